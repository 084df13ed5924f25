"""People and other systems are told of approvals: an intent becomes deliveries, each of them sent at least once."""

from approvals.intents import KIND
from approvals.telling.expanding import expand
from approvals.telling.sending import is_anything_due, work
from approvals.telling.shown import Shown, of_approval, of_task

__all__ = ["KIND", "Shown", "expand", "is_anything_due", "of_approval", "of_task", "work"]
