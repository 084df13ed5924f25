"""What did not arrive is made good once, however many cases tell of it (M15)."""

from __future__ import annotations

import pytest
from django.db import transaction

from runtime_app.desk import verbs
from runtime_app.errors import RuntimeAppError
from runtime_app.ledger.cases import OpenCase
from runtime_app.models import Case, Task
from tests.desk.conftest import Desk
from tests.notices.teller import now
from tests.world import World


def test_two_cases_of_one_refund_are_not_two_compensations(world: World) -> None:
    """Both were open for want of the same proof, and both were closed by it: one follow-up is due."""
    desk = Desk(world)
    order, task, case = desk.absent()
    with transaction.atomic():
        OpenCase("STALE_PENDING", "stripe", f"pi_{order}", order, world.operation(task).id, 1000, "USD").store(
            tenant_id=world.amber.pk, task_id=task.pk, now=now())
    for person in (desk.olga, desk.otto):
        desk.do(verbs.declare_not_executed, person, case, code="provider_denies", reason="in writing")
    closed = list(Case.objects.filter(task=task).order_by("class_name"))
    assert [(c.class_name, c.outcome) for c in closed] == [
        ("ABSENT_FINAL", "not_executed"), ("STALE_PENDING", "not_executed")]
    first, second = closed
    desk.do(verbs.start_compensation, desk.olga, first, amount_minor=1000, reason="send it again")
    with pytest.raises(RuntimeAppError, match="follow-up was asked for already"):
        desk.do(verbs.start_compensation, desk.otto, second, amount_minor=1000, reason="send it again")
    assert Task.objects.filter(state__follows=str(task.pk)).count() == 1
