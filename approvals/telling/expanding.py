"""One intent of the outbox becomes a delivery to each person and to each address of the tenant's own."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from approvals.models import Approval, Preferences, WebhookEndpoint
from approvals.telling import audience, moments
from runtime_app import rows
from runtime_app.ids import new_id
from runtime_app.models import User
from runtime_app.outbox import Due
from runtime_app.points import point

_COLUMNS = (
    ("id", "uuid"), ("tenant_id", "uuid"), ("approval_id", "uuid"), ("what", "text"), ("person_id", "bigint"),
    ("endpoint_id", "uuid"), ("dedup_key", "text"), ("state", "text"), ("due_at", "timestamptz"), ("tries", "int"),
    ("last_error", "text"), ("created_at", "timestamptz"),
)


def expand(intent: Due) -> str | None:
    """Write the deliveries, each once however often this is called; always done, so that it answers None."""
    said = intent.payload
    found = Approval.objects.filter(id=UUID(said["approval"]), tenant=intent.tenant_id)
    asked = found.select_related("task", "tenant").first()
    if asked is None or (said["what"] in audience.TO_DECIDE and not audience.is_open(asked)):
        return None
    now = rows.now()
    to = [*_people(asked, said["what"], said.get("to"), now), *_endpoints(asked, now)]
    key = ":".join(filter(None, (said["approval"], said["what"], said.get("once"))))
    point("telling.expand.commit")
    rows.insert(
        "approvals_delivery", _COLUMNS,
        [(new_id(), asked.tenant_id, asked.id, said["what"], person, endpoint, f"{key}:{person or endpoint}", "waiting",
          due, 0, "", now) for person, endpoint, due in to],
        "ON CONFLICT (dedup_key) DO NOTHING",
    )
    point("telling.expand.committed")
    return None


def _people(
    asked: Approval, what: str, to: int | None, now: datetime
) -> list[tuple[int | None, UUID | None, datetime]]:
    """Those who want mail and have an address, and when each is told."""
    people = User.objects.filter(id__in=audience.of(asked, what, to), is_active=True).exclude(email="")
    wishes = Preferences.objects.in_bulk([person.pk for person in people])
    found = []
    for person in people:
        wished = wishes.get(person.pk, Preferences(person=person))
        if wished.mail:
            zone = moments.zone_of(person.time_zone, asked.tenant.time_zone)
            found.append((person.pk, None, moments.first(now, wished, zone)))
    return list(found)


def _endpoints(asked: Approval, now: datetime) -> list[tuple[int | None, UUID | None, datetime]]:
    active = WebhookEndpoint.objects.filter(tenant=asked.tenant_id, is_active=True)
    return [(None, id, now) for id in active.values_list("id", flat=True)]
