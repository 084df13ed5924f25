"""What is at stake in the queue: how many and how much, by kind and currency, and for how long already."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from runtime_app import rows
from runtime_app.console import queue
from runtime_app.models import Tenant
from runtime_app.reconciliation.classes import CLASSES

MOST = 10_000  # rows are summed up to here, the oldest first; the page says so when there are more
BANDS: tuple[str | Promise, ...] = (_("< 15 min"), _("15 min to 2 h"), _("2 h to 1 day"), _("> 1 day"))
_EDGES = [900, 7_200, 86_400]

_OUTCOMES = (
    "SELECT state AS kind, currency, amount_minor, coalesce(first_submit_at, created_at) AS since"
    " FROM runtime_app_operation WHERE tenant_id = %s AND state = ANY(%s) ORDER BY created_at LIMIT %s"
)
_CASES = (
    "SELECT class_name AS kind, currency, amount_minor, opened_at AS since FROM runtime_app_case"
    " WHERE tenant_id = %s AND state = ANY(%s) AND (snoozed_until IS NULL OR snoozed_until <= runtime_now())"
    " ORDER BY opened_at LIMIT %s"
)
_SUMS = (
    "SELECT kind, currency, width_bucket(extract(epoch FROM runtime_now() - since)::numeric, %s::numeric[]),"
    " count(*), sum(amount_minor)::text FROM ({}) AS each GROUP BY 1, 2, 3"
)


@dataclass(slots=True)
class Stake:
    """`minor` is None when no amount is known of any of them."""

    kind: str
    currency: str
    url: str
    severity: str = ""
    minor: int | None = None
    bands: list[int] = field(default_factory=lambda: [0] * len(BANDS))

    @property
    def number(self) -> int:
        return sum(self.bands)


def at_stake(tenant: Tenant, wish: queue.Wish) -> list[Stake]:
    """The gravest first. Sums never mix currencies, and heed no filter but which part of the queue is shown."""
    of_cases = wish.show == queue.CASES
    states = ["open"] if of_cases else list(queue.OPERATION_STATES)
    stakes: dict[tuple[str, str], Stake] = {}
    for kind, currency, band, number, minor in rows.run(
        _SUMS.format(_CASES if of_cases else _OUTCOMES), [_EDGES, tenant.id, states, MOST]
    ):
        stake = stakes.setdefault((kind, currency), _empty(wish, kind, currency))
        stake.bands[band] += number
        if minor is not None:
            stake.minor = (stake.minor or 0) + int(minor)
    return sorted(stakes.values(), key=lambda s: (queue.SEVERITIES.index(s.severity or "normal"), s.kind, s.currency))


def _empty(wish: queue.Wish, kind: str, currency: str) -> Stake:
    known = CLASSES.get(kind)
    only = queue.Wish(show=wish.show)
    url = only.url(currency=currency, **({"case": kind} if wish.show == queue.CASES else {"state": kind}))
    return Stake(kind, currency, url, severity=known.severity if known else "")
