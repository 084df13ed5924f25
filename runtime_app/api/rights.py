"""Whether the clients of open streams may still see what they watch, asked for all of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar
from uuid import UUID

from django.contrib.sessions.models import Session
from django.db import connection
from django.utils import timezone

from runtime_app import access
from runtime_app.access import Principal
from runtime_app.models import ServiceAccount


class Watching(Protocol):
    principal: Principal
    tenant_id: UUID
    session_key: str | None


W = TypeVar("W", bound=Watching)


def still_allowed(watches: Sequence[W]) -> set[W]:
    """Those whose key is live, or whose person may see the tenant's tasks and is still signed in. Reads it fresh."""
    try:
        return _allowed(watches)
    finally:
        connection.close()


def _allowed(watches: Sequence[W]) -> set[W]:
    keys = {w.principal.pk for w in watches if isinstance(w.principal, ServiceAccount)}
    live = set(ServiceAccount.objects.filter(pk__in=keys, revoked_at=None).values_list("pk", flat=True))
    rights = access.rights_of({w.principal.pk for w in watches if not isinstance(w.principal, ServiceAccount)})
    wanted = {w.session_key for w in watches if w.session_key is not None}
    sessions = Session.objects.filter(session_key__in=wanted, expire_date__gt=timezone.now())
    signed_in = {None, *sessions.values_list("session_key", flat=True)}

    def may(watch: W) -> bool:
        if isinstance(watch.principal, ServiceAccount):
            return watch.principal.pk in live
        return (watch.principal.pk, watch.tenant_id, "see_tasks") in rights and watch.session_key in signed_in

    return {watch for watch in watches if may(watch)}
