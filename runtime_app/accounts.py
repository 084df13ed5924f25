"""A tenant's accounts at payment providers, as adapters want them and as admins set them."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any
from uuid import UUID

from runtime_app import rows
from runtime_app.adapters import payments
from runtime_app.adapters.payments.types import Capabilities, PaymentProvider, ProviderAccount
from runtime_app.models import Account, Tenant
from runtime_app.sealing import Unsealable, seal, unseal

log = logging.getLogger(__name__)

_READ = (
    "SELECT tenant_id, ref, provider, api_key_sealed, base_url, mode, settings, notice_secrets_sealed, time_zone,"
    " closed_at IS NOT NULL, is_default FROM runtime_app_account WHERE tenant_id = ANY(%s)"
    " ORDER BY closed_at IS NOT NULL, is_default DESC, ref"
)


def of_tenants(ids: Iterable[UUID]) -> dict[UUID, dict[str, ProviderAccount]]:
    """The accounts by tenant and reference, secrets opened. One whose secrets cannot be opened is left out, as if it
    were not there: whoever asks for many tenants at once goes on with the others.
    """
    found: dict[UUID, dict[str, ProviderAccount]] = {}
    for row in rows.run(_READ, [list(ids)]):
        try:
            found.setdefault(row[0], {})[row[1]] = _opened(*row[1:])
        except Unsealable:
            log.error("the secrets of account %s of tenant %s cannot be opened; it counts as not there", row[1], row[0])
    return found


def opened(account: Account) -> ProviderAccount:
    """The account as adapters want it. Raises sealing.Unsealable."""
    return _opened(
        account.ref, account.provider, account.api_key_sealed, account.base_url, account.mode, account.settings,
        account.notice_secrets_sealed, account.time_zone,
        account.closed_at is not None, account.is_default,
    )


def _opened(
    ref: str, provider: str, key: str, base_url: str, mode: str, settings: Any, secrets: str, zone: str, closed: bool,
    default: bool,
) -> ProviderAccount:
    return ProviderAccount(
        id=ref, provider=provider, api_key=unseal(key), base_url=base_url, mode=mode,
        settings=json.loads(settings) if isinstance(settings, str) else settings,
        notice_secrets=tuple(json.loads(unseal(secrets) or "[]")), time_zone=zone, closed=closed,
        default=default,
    )


def providers() -> tuple[str, ...]:
    """The names of the providers that an account may be at."""
    return tuple(payments.PROVIDERS)


def promises(tenant_id: UUID) -> dict[str, Capabilities]:
    """What the provider of each of the tenant's accounts promises, by the account's reference. Opens no secret."""
    found = Account.objects.filter(tenant=tenant_id, provider__in=providers()).defer(*_SECRETS)
    return {
        account.ref: _asked(account.provider).capabilities(
            ProviderAccount(account.ref, account.provider, api_key="", mode=account.mode, settings=account.settings)
        )
        for account in found
    }


_SECRETS = ("api_key_sealed", "notice_secrets_sealed")


@cache
def _asked(provider: str) -> PaymentProvider:
    """One that is asked for what it promises and what it wants to be told, and never sends anything."""
    return payments.build(provider, connect_timeout=1.0, read_timeout=1.0)


def check(account: Account) -> Mapping[str, str]:
    """What the provider's adapter misses or refuses in the account's settings; empty: usable."""
    return _asked(account.provider).check_account(opened(account))


def keep(
    tenant: Tenant, ref: str, *, provider: str, api_key: str = "", base_url: str = "", mode: str = "test",
    settings: Mapping[str, str] | None = None, notice_secrets: Iterable[str] = (), time_zone: str = "UTC",
    is_default: bool = False,
) -> Account:
    """The tenant's account of this reference, made or brought to these values. Checks belong to the caller."""
    account, _ = Account.objects.update_or_create(
        tenant=tenant, ref=ref,
        defaults={
            "provider": provider, "api_key_sealed": seal(api_key), "base_url": base_url, "mode": mode,
            "settings": dict(settings or {}), "time_zone": time_zone, "is_default": is_default,
            "notice_secrets_sealed": seal(json.dumps(list(notice_secrets))) if notice_secrets else "",
        },
    )
    return account
