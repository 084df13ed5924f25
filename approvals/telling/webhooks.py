"""Messages to a tenant's own addresses, as Standard Webhooks: signed, with an id that stays over every try."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC

from django.conf import settings
from django.urls import reverse

from approvals.models import Delivery
from runtime_app.sealing import Unsealable, unseal

Post = Callable[[str, str, str, bytes], str | None]


def send(delivery: Delivery, post: Post) -> str | None:
    """None when the receiver took it, else what went wrong."""
    assert delivery.endpoint is not None
    try:
        secret = unseal(delivery.endpoint.secret_sealed)
    except Unsealable:
        return "The secret of this address cannot be opened."
    return post(delivery.endpoint.url, secret, str(delivery.id), body(delivery))


def body(delivery: Delivery) -> bytes:
    """What is told: which approval, of which action, and how it stands now. Nothing in it decides anything."""
    asked = delivery.approval
    said = {
        "type": f"approval.{delivery.what}",
        "timestamp": delivery.created_at.astimezone(UTC).isoformat(),
        "data": {
            "tenant": delivery.tenant.slug, "approval_id": str(asked.id), "task_id": str(asked.task_id),
            "state": asked.state, "order_ref": asked.task.order_ref, "amount_minor": asked.facts["amount_minor"],
            "currency": asked.facts["currency"], "deadline_at": asked.deadline_at.astimezone(UTC).isoformat(),
            "url": settings.BASE_URL + reverse("approval", args=[asked.id]),
        },
    }
    return json.dumps(said).encode()
