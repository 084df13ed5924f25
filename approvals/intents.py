"""What of an approval is to be told, as intents of the outbox: written with the change that it tells of."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from runtime_app.outbox import Tell

KIND = "approval.tell"
# What is told when an approval ends, by the state in which it ends.
ENDED = {
    "approved": "decided", "rejected": "decided", "input_asked": "input_asked", "expired": "expired",
    "cancelled": "cancelled", "superseded": "superseded",
}


def tell(approval_id: UUID, what: str, *, to: int | None = None, once: str = "") -> Tell:
    """`to` is the person whom it concerns, for what concerns one; `once` tells it apart from the same at another time.
    """
    payload: dict[str, Any] = {"approval": str(approval_id), "what": what}
    if to is not None:
        payload["to"] = to
    key = f"{KIND}:{approval_id}:{what}"
    return Tell(KIND, f"{key}:{once}" if once else key, payload if not once else payload | {"once": once})
