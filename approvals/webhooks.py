"""A tenant's own addresses that are told of approvals."""

from __future__ import annotations

import base64
import secrets
from uuid import UUID

from django.conf import settings
from django.db import transaction

from approvals.models import WebhookEndpoint
from runtime_app import access, addresses
from runtime_app.errors import FieldErrors, Forbidden, NotFound
from runtime_app.models import Tenant, User
from runtime_app.points import point
from runtime_app.sealing import seal

MOST = 10  # of one tenant


def of_tenant(person: User, tenant: Tenant) -> list[WebhookEndpoint]:
    """The tenant's addresses that are told, the eldest first. Raises NotFound or Forbidden."""
    _may_manage(person, tenant.id)
    return list(WebhookEndpoint.objects.filter(tenant=tenant, is_active=True).order_by("created_at", "id"))


def add_endpoint(person: User, tenant: Tenant, url: str) -> tuple[WebhookEndpoint, str]:
    """The address and the secret that its messages are signed with, which is told here once and never again. An address
    that was dropped may be added anew; it has a new secret then.

    Raises NotFound, Forbidden, or FieldErrors beside url.
    """
    _may_manage(person, tenant.id)
    if problem := addresses.unreachable(url, inside=settings.ENVIRONMENT != "live"):
        raise FieldErrors({"url": problem})
    secret = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
    with transaction.atomic(durable=True):
        # The addresses of one tenant are added one after another, so that the count holds.
        Tenant.objects.select_for_update(no_key=True).filter(pk=tenant.pk).first()
        active = WebhookEndpoint.objects.filter(tenant=tenant, is_active=True)
        if active.filter(url=url).exists():
            raise FieldErrors({"url": "This address is told already."})
        if active.count() >= MOST:
            raise FieldErrors({"url": f"There are {MOST} addresses; drop one of them first."})
        given = {"secret_sealed": seal(secret), "is_active": True, "created_by": person}
        endpoint, _ = WebhookEndpoint.objects.update_or_create(tenant=tenant, url=url, defaults=given)
        point("webhooks.add.commit")
    point("webhooks.add.committed")
    return endpoint, secret


def drop_endpoint(person: User, endpoint_id: UUID) -> None:
    """Nothing is sent there any more, also not what waits. Raises NotFound or Forbidden."""
    endpoint = WebhookEndpoint.objects.filter(pk=endpoint_id, is_active=True).first()
    if endpoint is None:
        raise NotFound
    _may_manage(person, endpoint.tenant_id)
    WebhookEndpoint.objects.filter(pk=endpoint.pk).update(is_active=False)


def _may_manage(person: User, tenant_id: UUID) -> None:
    access.forget(person)
    if not access.may(person, tenant_id, "see_tasks"):
        raise NotFound
    if not access.may(person, tenant_id, "manage_tenant"):
        raise Forbidden
