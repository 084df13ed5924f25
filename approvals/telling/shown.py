"""What became of telling people, for those who may see the approval."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from django.db.models import QuerySet

from approvals.models import Approval, Delivery
from runtime_app.models import Task


@dataclass(frozen=True, slots=True)
class Shown:
    """One delivery: `who` is a person's name, or a receiver's host. `at` is when it ended, or when it is due."""

    who: str
    what: str  # of models.delivery.WHATS
    how: str  # mail or webhook
    state: str  # waiting, sent, dropped or dead
    at: datetime
    told_of_at: datetime
    tries: int
    last_error: str


def of_approval(approval: Approval) -> list[Shown]:
    """The approval's deliveries, in the order in which they were asked for."""
    return _read(Delivery.objects.filter(approval=approval))


def of_task(task: Task) -> list[Shown]:
    """The same of all approvals that the task has had."""
    return _read(Delivery.objects.filter(approval__task=task))


def _read(found: QuerySet[Delivery]) -> list[Shown]:
    return [_shown(one) for one in found.select_related("person", "endpoint").order_by("created_at", "id")]


def _shown(delivery: Delivery) -> Shown:
    if delivery.person is not None:
        who, how = delivery.person.shown_name, "mail"
    else:
        url = delivery.endpoint.url if delivery.endpoint is not None else ""
        who, how = urlsplit(url).hostname or "", "webhook"
    at = delivery.ended_at or delivery.due_at or delivery.created_at
    return Shown(
        who, delivery.what, how, delivery.state, at, delivery.created_at, delivery.tries, delivery.last_error
    )
