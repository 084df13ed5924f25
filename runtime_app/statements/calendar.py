"""The days of an account: each gets its row when it is over, in the provider's time zone."""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings

from runtime_app import rows
from runtime_app.adapters.payments.days import day_window, known_zone
from runtime_app.ids import new_id
from runtime_app.models import Account
from runtime_app.statements import reach
from runtime_app.timing import DAY, Timing

_UTC = ZoneInfo("UTC")
_BACK_MOST = 62  # days; a statement of an older day is taken when somebody brings it
_made: dict[UUID, date] = {}  # by account: the newest day that this process has seen to


def now() -> datetime:
    """The database's now."""
    return rows.now()


def zone_of(account: Account) -> ZoneInfo:
    return known_zone(account.time_zone) or _UTC


def today(account: Account, moment: datetime) -> date:
    return moment.astimezone(zone_of(account)).date()


def window(account: Account, day: date) -> tuple[datetime, datetime]:
    """The first instant of the day, and the first after it."""
    return day_window(day, zone_of(account))


def last_day(day: date, timing: Timing) -> date:
    """The last day on whose statement a booking of `day` may still come."""
    return day + timedelta(days=math.ceil(timing.statement_sla / DAY))


def open_days() -> int:
    """Make the rows of the days that are over and have none, of every account with statements; returns how many.

    An account's first day is the one on which it was set up.
    """
    found = rows.run(
        "SELECT id, tenant_id, provider, time_zone, created_at, runtime_now() FROM runtime_app_account"
        " WHERE closed_at IS NULL ORDER BY id"
    )
    made = 0
    for id, tenant_id, provider, zone_name, created_at, moment in found:
        zone = known_zone(zone_name) or _UTC
        last = moment.astimezone(zone).date() - timedelta(days=1)
        if _made.get(id) == last or reach.form_of(provider) == "none":
            continue
        first = max(created_at.astimezone(zone).date(), last - timedelta(days=_BACK_MOST))
        days = [first + timedelta(days=n) for n in range((last - first).days + 1)]
        made += _insert(id, tenant_id, days, zone)
        _made[id] = last
    return made


def _insert(account_id: UUID, tenant_id: UUID, days: list[date], zone: ZoneInfo) -> int:
    if not days:
        return 0
    after = timedelta(seconds=settings.TIMING.statement_at)
    due = [day_window(day, zone)[1] + after for day in days]
    stored = rows.run(
        "INSERT INTO runtime_app_statementday (id, tenant_id, account_id, day, state, trouble, due_at, tries, totals)"
        " SELECT w.id, %s, %s, w.day, 'open', '', w.due, 0, '{}'"
        " FROM unnest(%s::uuid[], %s::date[], %s::timestamptz[]) AS w(id, day, due)"
        " ON CONFLICT (account_id, day) DO NOTHING RETURNING id",
        [tenant_id, account_id, [new_id() for _ in days], days, due],
    )
    return len(stored)


def is_overdue(account: Account, day: date, timing: Timing) -> bool:
    """Whether the last statement on which something of `day` may still stand should be there by now."""
    end = window(account, last_day(day, timing))[1]
    return now() >= end + timedelta(seconds=timing.statement_at)


def is_over(account: Account, day: date) -> bool:
    return day < today(account, now())
