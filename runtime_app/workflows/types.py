"""What a workflow version is: handlers by status, each taking facts and giving a transition."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from runtime_app.adapters.orders.types import OrderSystem
from runtime_app.adapters.payments.types import Deadline, PaymentProvider, ProviderAccount
from runtime_app.leases import Claimed
from runtime_app.timing import Timing
from runtime_app.transitions import Transition

_WHENEVER = Deadline(math.inf)


@dataclass(frozen=True, slots=True)
class Ports:
    """What a handler may reach outside, and until when. `sender_holds` asks whether the sender's lock is still ours.

    `deadline` is the end of the lease, which is renewed; `send_by` is the last possible send as it was committed with
    the request, which is not, since everybody who judges an absence counts from it.
    """

    providers: Mapping[str, PaymentProvider]
    orders: OrderSystem
    timing: Timing
    deadline: Deadline
    sender_holds: Callable[[UUID], bool]
    post: Callable[[str, str, str, bytes], str | None]  # to this address: signed with the secret, by its id, the body
    send_by: Deadline = _WHENEVER

    def provider(self, account: ProviderAccount) -> PaymentProvider:
        """The adapter of this account; a KeyError when this installation has none of its name."""
        return self.providers[account.provider]

    @property
    def sending(self) -> Deadline:
        """Until when something may be sent."""
        return Deadline(min(self.deadline.at, self.send_by.at))

    def may_send(self, operation_id: UUID) -> bool:
        """Enough of the lease is left for the whole send, and the sender's lock still ours: asked just before it."""
        needed = self.timing.connect_timeout + self.timing.read_timeout + self.timing.send_margin
        return self.sending.left > needed and self.sender_holds(operation_id)


@dataclass(frozen=True, slots=True)
class Facts:
    """One task with what its workflow's loader read for it."""

    task: Claimed
    loaded: Any = None


Run = Callable[[Any, Ports], Transition]
Load = Callable[[Sequence[Claimed]], Mapping[UUID, Any]]


@dataclass(frozen=True, slots=True)
class Handler:
    """`waits_outside`: it talks to an outside system, so it runs beside others in a thread, without a database."""

    run: Run
    waits_outside: bool = False


def load_nothing(tasks: Sequence[Claimed]) -> Mapping[UUID, Any]:
    return {}


@dataclass(frozen=True, slots=True)
class Workflow:
    """One version. `load` reads, set-based, what the handlers of these tasks need."""

    name: str
    version: int
    handlers: Mapping[str, Handler]
    load: Load = load_nothing
    lane: str = "default"
    schema_version: int = 1
    requestable: bool = True
    deadlines: Mapping[str, float] = field(default_factory=dict)

    @property
    def served(self) -> str:
        return f"{self.name}/{self.version}"
