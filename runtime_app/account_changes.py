"""What an admin changes of an account at a provider, checked as a whole before anything is stored.

A change is refused when the account is not as it was seen. Secrets go in and never come out again.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings as installation
from django.db import transaction

from runtime_app import accounts
from runtime_app.errors import Conflict, FieldErrors, NotFound
from runtime_app.models import Account, Operation, Tenant
from runtime_app.models.columns import RuntimeNow
from runtime_app.sealing import Unsealable, seal, unseal
from runtime_app.states import UNRESOLVED

log = logging.getLogger(__name__)
SECRETS_MOST = 2  # notice secrets that are good at one time: the newest, and the one that it replaces
_SHORTEST, _LONGEST = 8, 500  # characters of a secret
_REF = re.compile(r"[a-z][a-z0-9_-]{0,79}", re.ASCII)
# What an admin fills in of each provider's own settings; a setting that is not here is kept as it is.
_SETTINGS: Mapping[str, tuple[str, ...]] = {
    "bank": ("debtor_iban", "debtor_name", "debtor_bic", "debtor_currency"),
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an account is to be, its secrets apart."""

    mode: str = "test"  # test | live
    base_url: str = ""
    time_zone: str = "UTC"
    is_default: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)


def settings_of(provider: str) -> tuple[str, ...]:
    """The names of the settings that an account at this provider has."""
    return _SETTINGS.get(provider, ())


def secrets_kept(account: Account) -> int:
    """How many notice secrets are good now. Raises sealing.Unsealable."""
    return len(_secrets(account))


def state_sha256(account: Account) -> str:
    """The digest of all that an admin sees of it; it changes with every change."""
    said = [
        account.ref, account.provider, account.mode, account.base_url, account.settings, account.time_zone,
        account.is_default, str(account.secrets_changed_at), bool(account.api_key_sealed),
        hashlib.sha256(account.notice_secrets_sealed.encode()).hexdigest(),
    ]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def create(
    tenant: Tenant, ref: str, provider: str, wanted: Wanted, *, actor: str, api_key: str = "", notice_secret: str = ""
) -> Account:
    """A new account. The first one of a tenant is its default. FieldErrors names what cannot be so."""
    if provider not in accounts.providers():
        raise FieldErrors({"provider": f"Choose one of {', '.join(accounts.providers())}."})
    if not _REF.fullmatch(ref):
        raise FieldErrors({"ref": "Use small letters, digits, - and _, at most 80, and begin with a letter."})
    with transaction.atomic():
        _one_by_one(tenant)
        if Account.objects.filter(tenant=tenant, ref=ref).exists():
            raise FieldErrors({"ref": "This tenant has an account of this name already."})
        first = not Account.objects.filter(tenant=tenant, is_default=True).exists()
        account = Account(tenant=tenant, ref=ref, provider=provider)
        _take(account, wanted)
        account.is_default = wanted.is_default or first
        account.api_key_sealed = seal(_secret(api_key, "api_key") if api_key else "")
        account.notice_secrets_sealed = _sealed([_secret(notice_secret, "notice_secret")] if notice_secret else [])
        account.secrets_changed_at = RuntimeNow() if api_key or notice_secret else None
        _check(account)
        _only_default(account)
        Account.objects.bulk_create([account])
    account.refresh_from_db()
    _tell(account, actor, "created")
    return account


def change(tenant: Tenant, id: UUID, wanted: Wanted, *, seen_sha256: str, actor: str) -> Account:
    """Bring the account to these values. With another address it needs its API key anew. Raises NotFound, FieldErrors,
    or Conflict when it is not as it was seen."""

    def apply(account: Account) -> None:
        if account.is_default and not wanted.is_default:
            raise FieldErrors({"is_default": "Make another account the default one instead."})
        moved = [name for name in ("mode", "base_url") if getattr(account, name) != getattr(wanted, name)]
        if moved and (number := _in_doubt(account)):
            raise FieldErrors({moved[0]: f"Refunds of this account that are not proved yet: {number}. The provider that"
                                         " was sent them must stay the one that is asked."})
        if account.base_url != wanted.base_url:
            account.api_key_sealed = ""  # it is never shown, and so it does not go to an address of anybody's choice
            account.secrets_changed_at = RuntimeNow()
        _take(account, wanted)

    return _changed(tenant, id, seen_sha256, actor, "changed", apply)


def set_key(tenant: Tenant, id: UUID, api_key: str, *, seen_sha256: str, actor: str) -> Account:
    """Replace the API key; the old one is forgotten."""

    def apply(account: Account) -> None:
        account.api_key_sealed = seal(_secret(api_key, "api_key"))
        account.secrets_changed_at = RuntimeNow()

    return _changed(tenant, id, seen_sha256, actor, "api key replaced", apply)


def add_notice_secret(tenant: Tenant, id: UUID, secret: str, *, seen_sha256: str, actor: str) -> Account:
    """The secret that notices are signed with from now on; the one before it stays good until it is dropped."""

    def apply(account: Account) -> None:
        held = _readable(account)
        if _secret(secret, "notice_secret") in held:
            raise FieldErrors({"notice_secret": "This secret is good already."})
        account.notice_secrets_sealed = _sealed([secret, *held][:SECRETS_MOST])
        account.secrets_changed_at = RuntimeNow()

    return _changed(tenant, id, seen_sha256, actor, "notice secret added", apply)


def drop_old_secret(tenant: Tenant, id: UUID, *, seen_sha256: str, actor: str) -> Account:
    """Only the newest notice secret is good from now on."""

    def apply(account: Account) -> None:
        held = _secrets(account)
        if len(held) < SECRETS_MOST:
            raise Conflict("There is no older notice secret; nothing was changed.")
        account.notice_secrets_sealed = _sealed(held[:1])
        account.secrets_changed_at = RuntimeNow()

    return _changed(tenant, id, seen_sha256, actor, "old notice secret dropped", apply)


_COLUMNS = (
    "mode", "base_url", "settings", "time_zone", "is_default", "api_key_sealed", "notice_secrets_sealed",
    "secrets_changed_at",
)


def _changed(
    tenant: Tenant, id: UUID, seen_sha256: str, actor: str, what: str, apply: Callable[[Account], None]
) -> Account:
    with transaction.atomic():
        _one_by_one(tenant)
        account = Account.objects.select_for_update(no_key=True).filter(tenant=tenant, pk=id).first()
        if account is None:
            raise NotFound
        if state_sha256(account) != seen_sha256:
            raise Conflict("Somebody changed this account while you were looking; nothing was recorded.")
        apply(account)
        _check(account)
        _only_default(account)
        account.save(update_fields=_COLUMNS)
    account.refresh_from_db()
    _tell(account, actor, what)
    return account


def _one_by_one(tenant: Tenant) -> None:
    """Changes of one tenant's accounts wait for each other: a new default one takes that from another."""
    Tenant.objects.select_for_update(no_key=True).get(pk=tenant.pk)


def _take(account: Account, wanted: Wanted) -> None:
    known = settings_of(account.provider)
    kept = {name: value for name, value in account.settings.items() if name not in known}
    given = {name: value.strip() for name, value in wanted.settings.items() if name in known and value.strip()}
    account.mode, account.base_url, account.time_zone = wanted.mode, wanted.base_url, wanted.time_zone
    account.is_default, account.settings = wanted.is_default, kept | given


def _check(account: Account) -> None:
    """Everything that must be so, in sentences by field; the provider's adapter has its say."""
    wrong: dict[str, str] = {}
    if account.mode not in {"test", "live"}:
        wrong["mode"] = "Choose test or live."
    if account.base_url and (sentence := _wrong_address(account)):
        wrong["base_url"] = sentence
    if account.mode == "live":
        lacking = [name for name, there in (("an API key", account.api_key_sealed),
                                            ("a notice secret", account.notice_secrets_sealed)) if not there]
        if lacking:
            wrong["mode"] = f"An account goes live only with both secrets; {' and '.join(lacking)} is missing."
    if not wrong:
        wrong |= _of_adapter(account)
    if wrong:
        raise FieldErrors(wrong)


def _of_adapter(account: Account) -> Mapping[str, str]:
    """What the adapter says. One whose other secret was sealed under a key that is gone is not stopped from getting
    new ones, one after the other."""
    try:
        return accounts.check(account)
    except Unsealable:
        return {}


def _wrong_address(account: Account) -> str:
    try:
        parts = urlsplit(account.base_url)
        named = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return "This is no address; write it as https://bank.example."
    plain = account.base_url.isascii() and account.base_url.isprintable() and " " not in account.base_url
    if not named or parts.scheme not in {"http", "https"} or not plain or len(account.base_url) > 300:
        return "This is no address; write it as https://bank.example."
    if parts.username is not None or parts.query or parts.fragment:
        return "Write the address without a name, a question or a fragment in it."
    if parts.scheme == "http" and (account.mode == "live" or installation.ENVIRONMENT == "live"):
        return "Use https; secrets and money do not travel in the open."
    return ""


def _only_default(account: Account) -> None:
    if account.is_default:
        others = Account.objects.filter(tenant=account.tenant_id, is_default=True).exclude(pk=account.pk)
        others.update(is_default=False)


def _in_doubt(account: Account) -> int:
    held = Operation.objects.filter(tenant=account.tenant_id, account=account.ref, state__in=sorted(UNRESOLVED))
    return held.count()


def _secret(value: str, name: str) -> str:
    plain = value.isascii() and value.isprintable() and " " not in value
    if not plain or not _SHORTEST <= len(value) <= _LONGEST:
        raise FieldErrors({name: f"Use {_SHORTEST} to {_LONGEST} plain ASCII characters without spaces."})
    return value


def _secrets(account: Account) -> list[str]:
    return list(json.loads(unseal(account.notice_secrets_sealed) or "[]"))


def _readable(account: Account) -> list[str]:
    """The same, or none when the key they were sealed under is gone."""
    try:
        return _secrets(account)
    except Unsealable:
        return []


def _sealed(secrets: list[str]) -> str:
    return seal(json.dumps(secrets)) if secrets else ""


def _tell(account: Account, actor: str, what: str) -> None:
    log.info("account %s of tenant %s %s by %s", account.ref, account.tenant_id, what, actor)
