"""Rows of facts about a case: whose it is, until when, what it stops."""

from __future__ import annotations

from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runtime_app.console import moments
from runtime_app.console.facts import Fact
from runtime_app.console.tags import printable
from runtime_app.desk.situation import Situation

_BLOCKS: dict[str, str | Promise] = {
    "payment": gettext_lazy("nothing is submitted on this payment"),
    "order": gettext_lazy("nothing is submitted on this order"),
    "nothing": gettext_lazy("it stops nothing"),
}


def of_case(s: Situation) -> list[Fact]:
    case = s.case
    facts = [
        Fact(_("Owner"), printable(case.owner.shown_name) if case.owner else _("nobody")),
        Fact(_("Opened"), moments.as_moment(case.opened_at)),
    ]
    if case.closed_at is not None:
        facts.append(Fact(_("Closed"), moments.as_moment(case.closed_at)))
    else:
        overdue = _("overdue since") if s.overdue else ""
        facts.append(Fact(_("Decide before"), format_html("{} {}", overdue, moments.as_moment(case.deadline_at))))
    if s.snoozed and case.snoozed_until is not None:
        facts.append(Fact(_("Put off until"), moments.as_moment(case.snoozed_until)))
    if s.next_look_at is not None:
        facts.append(Fact(_("Next look"), moments.as_moment(s.next_look_at)))
    blocks = case.blocks if s.open and (case.payment_ref or case.order_ref) else "nothing"
    if s.operation is not None:
        facts.append(Fact(_("Sent"), s.sends))
    return [
        *facts,
        Fact(_("Meanwhile"), _BLOCKS.get(blocks, blocks)),
        Fact(_("Account"), printable(case.account.ref) if case.account else "—"),
        Fact(_("Case"), ident=case.id),
        Fact(_("Evidence shown"), ident=s.evidence_sha256),
    ]
