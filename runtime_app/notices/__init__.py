"""What providers tell by themselves: checked, stored before it is answered, and then never more than a hint to ask."""

from __future__ import annotations

from runtime_app.notices.hearing import is_anything_due, work
from runtime_app.notices.intake import BODY_MOST, NoSuchAccount, NotReady, NotTaken, Receipt, Taken, receive

__all__ = [
    "BODY_MOST", "NoSuchAccount", "NotReady", "NotTaken", "Receipt", "Taken", "is_anything_due", "receive", "work",
]
