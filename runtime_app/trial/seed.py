"""Puts the trial's companies, people, keys and orders where they belong; any number of times with the same result."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.hashers import PBKDF2PasswordHasher

from approvals import policies
from approvals.models import Policy, Team, TeamMember
from runtime_app import accounts
from runtime_app.members import account_of_key, add_person, found_tenant, issue_key
from runtime_app.models import RuntimeClock, ServiceAccount, Task, Tenant, User
from runtime_app.trial import cast
from runtime_app.trial.failure import TrialFailure
from runtime_app.trial.places import read_json, write_private
from runtime_app.trial.visitor import Provider

ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"  # nothing that is mistaken for something else when read aloud


def seed(keys_file: Path, sandbox_url: str) -> dict[str, Any]:
    """The `tenants` and `orders` of trial.json. `keys_file` keeps passwords and keys, so that they can be told again.

    Raises TrialFailure when the database holds anything that is not a trial.
    """
    if Tenant.objects.exists() and not RuntimeClock.objects.exists():
        raise TrialFailure("This database is not a trial's: it holds tenants and its clock cannot be moved.")
    RuntimeClock.objects.get_or_create(pk=1)  # makes the database's clock one that may be moved
    keys = Keys(keys_file)
    provider = Provider(sandbox_url)
    tenants = [_company(company, provider, keys) for company in cast.COMPANIES]
    return {"tenants": tenants, "orders": _orders(sandbox_url)}


class Keys:
    """The file of secrets. A secret is written there after the database has it, so the file never promises too much."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known: dict[str, Any] = read_json(file) or {}

    def get(self, kind: str, name: str) -> str | None:
        found = self._known.get(kind, {}).get(name)
        return found if isinstance(found, str) else None

    def keep(self, kind: str, name: str, secret: str) -> None:
        self._known.setdefault(kind, {})[name] = secret
        write_private(self._file, json.dumps(self._known, indent=1) + "\n")


def _company(company: cast.Company, provider: Provider, keys: Keys) -> dict[str, Any]:
    tenant = found_tenant(
        company.slug, company.name, time_zone=company.time_zone, approval_threshold_minor=company.threshold_minor
    )
    _accounts(tenant, provider, keys)
    people = [
        {"username": person.username, "password": _person(tenant, person, keys), "roles": list(person.roles)}
        for person in company.people
    ]
    _rules(company, tenant)
    return {
        "slug": company.slug,
        "api_key": _api_key(tenant, keys),
        "approval_threshold_minor": tenant.approval_threshold_minor,
        "people": people,
    }


def _rules(company: cast.Company, tenant: Tenant) -> None:
    """The company's teams and, where it has one and nothing was asked for yet, its policy: four eyes here as well."""
    for ref, usernames in company.teams:
        team, fresh = Team.objects.get_or_create(tenant=tenant, ref=ref)
        for person in User.objects.filter(username__in=usernames) if fresh else ():
            TeamMember.objects.create(team=team, person=person)
    begun = Policy.objects.filter(tenant=tenant).exists() or Task.objects.filter(tenant=tenant).exists()
    if company.slug != cast.POLICY_TENANT or begun:
        return
    first, second = User.objects.filter(username__in=[
        person.username for person in company.people if "tenant_admin" in person.roles]).order_by("-username")[:2]
    said = cast.policy(tenant.approval_threshold_minor, settings.TIMING.approval_deadline)
    proposed = policies.propose(first, tenant, "refund", said, why="Large refunds are seen by finance as well.")
    policies.agree(second, proposed.id)


def _person(tenant: Tenant, person: cast.Person, keys: Keys) -> str:
    """The person's password, which is a new one when nobody knows the old."""
    known = keys.get("passwords", person.username)
    password = known or "-".join("".join(secrets.choice(ALPHABET) for _ in range(4)) for _ in range(3))
    there = User.objects.filter(username=person.username).exists()
    user = add_person(
        tenant, person.username, None, person.roles, full_name=person.full_name, time_zone=person.time_zone
    )
    # Mails of a trial become files in its folder, and no such address leads anywhere.
    User.objects.filter(pk=user.pk, email="").update(email=f"{person.username}@{tenant.slug}.example")
    if not (there and known):
        # A random password needs no million rounds; Django adds them when the person signs in.
        hasher = PBKDF2PasswordHasher()
        user.password = hasher.encode(password, hasher.salt(), iterations=60_000)
        user.save(update_fields=["password"])
    keys.keep("passwords", person.username, password)
    return password


def _accounts(tenant: Tenant, provider: Provider, keys: Keys) -> None:
    """The tenant's accounts at the two providers. A later start may find both at other addresses."""
    secret = keys.get("notice_secrets", tenant.slug) or f"whsec_{secrets.token_urlsafe(24)}"
    api_key = f"sk_test_{tenant.slug}"
    account = accounts.keep(
        tenant, "stripe", provider="stripe", api_key=api_key, base_url=settings.SANDBOX_URL, notice_secrets=[secret],
        time_zone=tenant.time_zone, is_default=True,
    )
    keys.keep("notice_secrets", tenant.slug, secret)
    if url := os.environ.get("COUNTERSIGN_URL"):
        provider.make_account(tenant.slug, api_key, f"{url}/hooks/stripe/{account.id}", secret)
    if tenant.slug == cast.BANK_TENANT and (bank := os.environ.get("BANK_URL")):
        accounts.keep(tenant, "bank", provider="bank", base_url=bank, settings=cast.BANK_SETTINGS)


def _api_key(tenant: Tenant, keys: Keys) -> str:
    known = keys.get("api_keys", tenant.slug)
    if known:
        account = account_of_key(known)
        if account and account.tenant_id == tenant.id:
            return known
    earlier = ServiceAccount.objects.filter(tenant=tenant, name__startswith="storefront").count()
    _, key = issue_key(tenant, f"storefront-{earlier + 1}" if earlier else "storefront")
    keys.keep("api_keys", tenant.slug, key)
    return key


def _orders(sandbox_url: str) -> list[dict[str, Any]]:
    listed = list(cast.orders())
    provider = Provider(sandbox_url)
    for order in (*listed, *cast.bank_orders()):
        provider.make_order(order)
    return listed
