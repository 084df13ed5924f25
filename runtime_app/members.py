"""Who belongs to a tenant, in which roles, and which keys its applications hold."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import Group
from django.db import transaction
from guardian.shortcuts import assign_perm

from runtime_app.models import Membership, ServiceAccount, Tenant, User
from runtime_app.roles import ROLES


def found_tenant(slug: str, name: str, **settings: Any) -> Tenant:
    """The tenant of this slug, made if it is not there, with a group for each role."""
    with transaction.atomic():
        tenant, _ = Tenant.objects.get_or_create(slug=slug, defaults={"name": name, **settings})
        for role, permissions in ROLES.items():
            group, fresh = Group.objects.get_or_create(name=group_name(tenant, role))
            if fresh:
                for permission in permissions:
                    assign_perm(f"runtime_app.{permission}", group, tenant)
    return tenant


def group_name(tenant: Tenant, role: str) -> str:
    return f"{tenant.slug}:{role}"


def add_person(
    tenant: Tenant, username: str, password: str | None, roles: Iterable[str], *,
    full_name: str = "", time_zone: str = "",
) -> User:
    """Make the person if new (the password is set only then), a member of the tenant, and give the roles there."""
    with transaction.atomic():
        first, _, last = full_name.partition(" ")
        person, fresh = User.objects.get_or_create(
            username=username, defaults={"first_name": first, "last_name": last, "time_zone": time_zone}
        )
        if fresh:
            person.set_password(password)
            person.save(update_fields=["password"])
        Membership.objects.get_or_create(tenant=tenant, person=person)
        person.groups.add(*Group.objects.filter(name__in=[group_name(tenant, role) for role in roles]))
    return person


def roles_of(person: User, tenant: Tenant) -> list[str]:
    prefix = f"{tenant.slug}:"
    names = person.groups.filter(name__startswith=prefix).values_list("name", flat=True)
    return sorted(name.removeprefix(prefix) for name in names)


def take_role(person: User, tenant: Tenant, role: str) -> None:
    person.groups.remove(*Group.objects.filter(name=group_name(tenant, role)))


def issue_key(tenant: Tenant, name: str) -> tuple[ServiceAccount, str]:
    """A new service account and its key; the key is told here once and stored as a digest only."""
    key = f"csk_{secrets.token_urlsafe(32)}"
    account = ServiceAccount.objects.create(
        tenant=tenant, name=name, key_prefix=key[:12], key_sha256=hashlib.sha256(key.encode()).hexdigest()
    )
    return account, key


def account_of_key(key: str) -> ServiceAccount | None:
    """The live service account that holds this key. A key has 256 random bits, so a plain digest finds it."""
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
    return ServiceAccount.objects.select_related("tenant").filter(key_sha256=digest, revoked_at=None).first()


def names(tenant: Tenant) -> dict[str, str]:
    """The shown names of the tenant's people, by username."""
    found = User.objects.filter(memberships__tenant=tenant).order_by("username")
    return {person.username: person.shown_name for person in found}
