"""What happened before around a request, for whoever must judge it: plain counts and sums, no score."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Count, Q, QuerySet, Sum
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from approvals.models import Approval
from runtime_app.console.facts import Fact
from runtime_app.console.tags import money_words
from runtime_app.models import Operation, Task
from runtime_app.states import OperationState, Status

_DAYS, _COUNTED_MOST = 30, 100


def of_approval(asked: Approval) -> list[Fact]:
    task, facts = asked.task, asked.facts
    others = Operation.objects.filter(tenant=asked.tenant_id, state=OperationState.SUCCEEDED).exclude(task=task)
    of_order = others.filter(task__tenant=asked.tenant_id, task__order_ref=facts.get("order_ref") or "")
    of_payment = others.filter(account=facts.get("account") or "", payment_ref=facts.get("payment_ref") or "")
    rows = [
        Fact(_("Share of what was captured"), _share(facts.get("amount_minor"), facts.get("captured_minor"))),
        Fact(_("Refunded before, this payment"), _sums(of_payment)),
        Fact(_("Refunded before, this order"), _sums(of_order)),
    ]
    refused = Task.objects.filter(tenant=asked.tenant_id, order_ref=task.order_ref, status=Status.REJECTED)
    if number := refused.exclude(pk=task.pk).count():
        words = ngettext("%(n)s request on this order", "%(n)s requests on this order", number)
        rows.append(Fact(_("Rejected before"), words % {"n": number}))
    if task.requester_id is not None:
        rows.append(Fact(_("Asked by the same person"), _lately(asked)))
    return rows


def _share(amount: object, captured: object) -> str:
    if type(amount) is not int or type(captured) is not int or captured <= 0:
        return _("not known")
    if amount == captured:
        return _("all of it")
    tenths = amount * 1000 // captured
    return f"{tenths // 10}.{tenths % 10} %" if tenths else _("under %(n)s %%") % {"n": "0.1"}


def _sums(operations: QuerySet[Operation]) -> str:
    found = operations.order_by("currency").values_list("currency").annotate(n=Count("pk"), sum=Sum("amount_minor"))
    told = [
        ngettext("%(n)s refund, %(sum)s", "%(n)s refunds, %(sum)s", n) % {"n": n, "sum": money_words(minor, currency)}
        for currency, n, minor in found
    ]
    return "; ".join(told) or _("nothing")


def _lately(asked: Approval) -> str:
    since = asked.asked_at - timedelta(days=_DAYS)
    mine = Task.objects.filter(Q(tenant=asked.tenant_id, requester=asked.task.requester_id, created_at__gte=since))
    number = mine.exclude(pk=asked.task_id).order_by()[:_COUNTED_MOST].count()
    shown = f"{number}+" if number == _COUNTED_MOST else str(number)
    words = ngettext(
        "%(n)s other request in the %(days)s days before", "%(n)s other requests in the %(days)s days before", number
    )
    return words % {"n": shown, "days": _DAYS}
