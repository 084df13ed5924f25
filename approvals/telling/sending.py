"""Deliveries are sent: taken under a lease, judged once more, and tried again until it works or is given up.

At least once is what is promised: whoever dies between sending and writing that down leaves a delivery that is sent
again, under the same id. No transaction is open while anything is sent.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol
from uuid import UUID

from django.db import InterfaceError, OperationalError, transaction
from rq.timeouts import JobTimeoutException

from approvals.models import Delivery, Preferences
from approvals.telling import audience, mails, moments, webhooks
from runtime_app import rows
from runtime_app.points import point
from runtime_app.reconciliation.schedule import backoff
from runtime_app.timing import Timing

log = logging.getLogger(__name__)
_IN_A_MAIL = 100  # at most so many pieces of news


class Outside(Protocol):
    """What of the outside is reached."""

    @property
    def timing(self) -> Timing: ...
    @property
    def post(self) -> Callable[[str, str, str, bytes], str | None]: ...


@dataclass(frozen=True, slots=True)
class Taken:
    """In this worker's hand until its lease ends; `tries` counts this one."""

    id: UUID
    tries: int


def is_anything_due() -> bool:
    return bool(rows.run(
        "SELECT 1 FROM approvals_delivery WHERE state = 'waiting' AND due_at <= (SELECT runtime_now()) LIMIT 1"
    ))


def work(ports: Outside, *, actor: str, limit: int) -> int:
    """Send what is due: up to `limit` single ones, and one digest; returns how many deliveries were taken."""
    seconds = max(ports.timing.lease, 60.0)
    taken = [[one] for one in _claim(_SINGLE, [limit], seconds)]
    if digest := _claim_digest(seconds):
        taken.append(digest)
    for together in taken:
        try:
            _send(together, ports)
        except (JobTimeoutException, OperationalError, InterfaceError):
            raise
        except Exception:  # one that raises does not stop the others; it is due again when its lease ends
            log.exception("the delivery %s cannot be sent", together[0].id)
            _failed(together, "This could not be put into words.", ports.timing)
    return sum(len(together) for together in taken)


_DUE = "d.state = 'waiting' AND d.due_at <= (SELECT runtime_now())"
_SINGLE = (
    "SELECT d.id FROM approvals_delivery d LEFT JOIN approvals_preferences p USING (person_id)"
    f" WHERE {_DUE} AND coalesce(p.digest, 'at_once') = 'at_once' ORDER BY d.due_at LIMIT %s"
    " FOR UPDATE OF d SKIP LOCKED"
)
# Not skipped when locked: two workers must not each take a part of one person's digest.
_OF_PERSON = (
    f"SELECT d.id FROM approvals_delivery d WHERE {_DUE} AND d.tenant_id = %s AND d.person_id = %s ORDER BY d.id"
    " LIMIT %s FOR UPDATE"
)


def _claim(which: str, params: Sequence[object], seconds: float) -> list[Taken]:
    with transaction.atomic(durable=True):
        found = rows.run(
            "UPDATE approvals_delivery SET tries = tries + 1, due_at = runtime_now() + make_interval(secs => %s)"
            f" WHERE id IN ({which}) RETURNING id, tries",
            [seconds, *params],
        )
        point("telling.claim.commit")
    point("telling.claim.committed")
    return [Taken(*row) for row in found]


def _claim_digest(seconds: float) -> list[Taken]:
    whose = rows.run(
        "SELECT d.tenant_id, d.person_id FROM approvals_delivery d JOIN approvals_preferences p USING (person_id)"
        f" WHERE {_DUE} AND p.digest <> 'at_once' ORDER BY d.due_at LIMIT 1"
    )
    return _claim(_OF_PERSON, [*whose[0], _IN_A_MAIL], seconds) if whose else []


def _send(taken: Sequence[Taken], ports: Outside) -> None:
    found = Delivery.objects.filter(id__in=[one.id for one in taken], state="waiting").select_related(
        "approval__task", "tenant", "person", "endpoint"
    )
    left: list[Delivery] = []
    for delivery in found.order_by("created_at", "id"):
        if why := _why_not(delivery):
            _end([delivery.id], "dropped", why)
        elif (later := _not_before(delivery)) is not None:
            _put_off(delivery.id, later)
        else:
            left.append(delivery)
    if not left:
        return
    error = mails.send(left) if left[0].person is not None else webhooks.send(left[0], ports.post)
    point("telling.sent")
    if error is None:
        _end([delivery.id for delivery in left], "sent")
    else:
        ids = {delivery.id for delivery in left}
        _failed([one for one in taken if one.id in ids], error, ports.timing)


def _why_not(delivery: Delivery) -> str:
    """Why it is not sent any more, as a sentence; empty when it is."""
    asked, person = delivery.approval, delivery.person
    if person is not None:
        if not _wishes(delivery).mail:
            return "The person does not want mail."
        return audience.why_not(asked, delivery.what, person)
    if delivery.endpoint is None or not delivery.endpoint.is_active:
        return "The address was taken away."
    is_over = delivery.what in audience.TO_DECIDE and not audience.is_open(asked)
    return "There is nothing to decide any more." if is_over else ""


def _not_before(delivery: Delivery) -> datetime | None:
    """The end of the quiet hours, when it would fall into them."""
    person, now = delivery.person, rows.now()
    if person is None:
        return None
    zone = moments.zone_of(person.time_zone, delivery.tenant.time_zone)
    found = moments.after_quiet(now, _wishes(delivery), zone)
    return found if found > now else None


def _wishes(delivery: Delivery) -> Preferences:
    return Preferences.objects.filter(person=delivery.person).first() or Preferences(person=delivery.person)


def _end(ids: Sequence[UUID], state: str, why: str = "") -> None:
    rows.run(
        "UPDATE approvals_delivery SET state = %s, last_error = %s, due_at = NULL, ended_at = runtime_now()"
        " WHERE id = ANY(%s) AND state = 'waiting'",
        [state, why[:300], list(ids)],
    )


def _put_off(id: UUID, until: datetime) -> None:
    """Until the quiet hours end; this was no try."""
    rows.run(
        "UPDATE approvals_delivery SET due_at = %s, tries = greatest(0, tries - 1) WHERE id = %s AND state = 'waiting'",
        [until, id],
    )


def _failed(taken: Sequence[Taken], error: str, timing: Timing) -> None:
    """Again after a while, or given up; not of one that another worker has taken up since."""
    slow = replace(timing, retry_first=timing.tell_first, retry_most=timing.tell_most)
    after = backoff(slow, max(one.tries for one in taken))
    for one in taken:
        if one.tries >= timing.tell_tries:
            _end([one.id], "dead", error)
            continue
        rows.run(
            "UPDATE approvals_delivery SET due_at = runtime_now() + make_interval(secs => %s), last_error = %s"
            " WHERE id = %s AND state = 'waiting' AND tries = %s",
            [after, error[:300], one.id, one.tries],
        )
