"""What happens on the wire after a request was read: an answer, or one of the ways of not answering."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from runtime_app.sandbox.http11 import Reply

How = Literal["send", "close", "reset", "truncate", "hang", "send_then_close"]


@dataclass(slots=True)
class Delivery:
    """Exactly one of `reply`, `later` and neither.

    `first` is done before anything else; it is given what to call on the loop when it is done. Then `after` seconds
    pass. `later` is then called on the event loop and may do work; `elsewhere` is called on a thread, because it
    blocks. `how` says what is done with the reply.
    """

    how: How = "send"
    reply: Reply | None = None
    after: float = 0.0
    later: Callable[[], Delivery] | None = None
    elsewhere: Callable[[], Reply] | None = None
    first: Callable[[Callable[[], None]], None] | None = None
    linger: float = 0.0  # send_then_close: seconds of idleness before the connection is closed

    @property
    def answered(self) -> str:
        """As the request log says it at first: the status, or how the connection ended or still hangs."""
        if self.how in ("close", "reset"):
            return "closed"
        if self.after or self.reply is None:
            return "hanging"
        return "truncated" if self.how == "truncate" else str(self.reply.status)
