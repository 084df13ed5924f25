"""Operations of a day, and those of them that no statement shows."""

from __future__ import annotations

from datetime import date, timedelta

from django.db.models import Exists, OuterRef, QuerySet

from runtime_app.models import Account, Operation, StatementDay, StatementLine
from runtime_app.statements import calendar, completeness
from runtime_app.states import OperationState
from runtime_app.timing import Timing


def of_day(account: Account, day: date) -> QuerySet[Operation]:
    """What was handed over on that day of the provider's."""
    start, end = calendar.window(account, day)
    return Operation.objects.filter(
        tenant_id=account.tenant_id, account=account.ref, first_submit_at__gte=start, first_submit_at__lt=end,
    ).exclude(state=OperationState.PREPARED).defer("request_body", "authority")


def operations(account: Account, day: date) -> list[Operation]:
    """Those that may have moved money and of which no line, of any day, shows that it went out."""
    shown = StatementLine.objects.filter(operation=OuterRef("pk"), amount_minor__lt=0)
    nothing = [OperationState.FAILED, OperationState.NOT_EXECUTED]
    found = of_day(account, day).exclude(state__in=nothing).filter(~Exists(shown))
    return list(found.select_related("task").order_by("first_submit_at", "id"))


def is_covered(account: Account, day: date, timing: Timing) -> bool:
    """Every day on which a booking of `day` may stand is there, whole: the day itself, those until the last on which
    it may still come, and the day before where there is one."""
    last = calendar.last_day(day, timing)
    found = {
        row.day: row for row in StatementDay.objects.filter(account=account, day__range=(day - timedelta(days=1), last))
    }
    wanted = [day + timedelta(days=n) for n in range((last - day).days + 1)]
    if any(each not in found for each in wanted):
        return False
    return all(_is_whole(row) for row in found.values())


def _is_whole(row: StatementDay) -> bool:
    if row.state == "closed":
        return True
    return completeness.whole(row) is not None
