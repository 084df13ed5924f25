"""The tenant a person is looking at: one at a time, chosen by the switcher, kept in the session."""

from __future__ import annotations

from typing import cast

from django.http import HttpRequest

from runtime_app import access
from runtime_app.errors import RuntimeAppError
from runtime_app.models import Tenant, User

SESSION_KEY = "tenant"


class NoTenant(RuntimeAppError):
    """You belong to no tenant yet."""

    code = "no_tenant"
    status = 403


def person(request: HttpRequest) -> User:
    """The signed-in person; views that ask for it are behind the sign-in."""
    return cast(User, request.user)


def tenants_of(request: HttpRequest) -> list[Tenant]:
    """The tenants the person may see, read once a request."""
    known: list[Tenant] | None = getattr(request, "_tenants", None)
    if known is None:
        known = list(access.tenants(person(request)))
        setattr(request, "_tenants", known)  # noqa: B010 - a request has no such attribute for the type checker
    return known


def current(request: HttpRequest) -> Tenant:
    """The chosen tenant, or the first by name when nothing valid is chosen. NoTenant when there is none."""
    shown: Tenant | None = getattr(request, "_tenant_shown", None)
    if shown is not None:
        return shown
    tenants = tenants_of(request)
    if not tenants:
        raise NoTenant
    chosen = request.session.get(SESSION_KEY)
    return next((each for each in tenants if each.slug == chosen), tenants[0])


def show(request: HttpRequest, tenant: Tenant) -> None:
    """This page is about a row of that tenant, so its frame names it; what was chosen stays chosen."""
    setattr(request, "_tenant_shown", tenant)  # noqa: B010 - as above
