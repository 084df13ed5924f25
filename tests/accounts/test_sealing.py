"""M41, issue of provider secrets: sealed at rest, under a key that can be replaced."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction

from runtime_app import accounts, sealing
from runtime_app.models import Account
from tests.world import World

OLD, NEW = Fernet.generate_key().decode(), Fernet.generate_key().decode()


@pytest.fixture
def keys(settings: Any) -> Iterator[Any]:
    """Set the keys with `keys(NEW, OLD)`; the newest comes first."""

    def use(*wanted: str) -> None:
        settings.SEAL_KEYS = list(wanted)
        sealing.forget()

    use(OLD)
    yield use
    sealing.forget()


def _kept(world: World) -> Account:
    return accounts.keep(
        world.amber, "second", provider="stripe", api_key="sk_test_very_secret", notice_secrets=["whsec_a", "whsec_b"]
    )


def test_a_secret_never_lies_in_the_database_in_the_clear(world: World, keys: Any) -> None:
    account = _kept(world)
    with connection.cursor() as cursor:
        cursor.execute("SELECT a::text FROM runtime_app_account a WHERE id = %s", [account.id])
        (row,) = cursor.fetchone() or ("",)
    assert "sk_test_very_secret" not in row and "whsec_a" not in row
    opened = accounts.opened(account)
    assert (opened.api_key, opened.notice_secrets) == ("sk_test_very_secret", ("whsec_a", "whsec_b"))
    assert "sk_test_very_secret" not in repr(opened) and "whsec_a" not in repr(opened)


def test_a_key_is_replaced_without_losing_a_secret(world: World, keys: Any) -> None:
    """The old key opens until everything is sealed anew; after that it may go."""
    Account.objects.all().delete()
    account = _kept(world)
    keys(NEW, OLD)
    assert accounts.opened(account).api_key == "sk_test_very_secret"
    call_command("reseal")
    keys(NEW)
    account.refresh_from_db()
    assert accounts.opened(account).api_key == "sk_test_very_secret"
    keys(OLD)
    with pytest.raises(sealing.Unsealable):
        accounts.opened(account)


def test_a_secret_that_no_key_opens_is_named_and_nothing_is_changed(world: World, keys: Any) -> None:
    Account.objects.all().delete()
    account = _kept(world)
    keys(NEW)
    with pytest.raises(CommandError, match="amber's account second") as refused:
        call_command("reseal")
    assert refused.value.returncode == 2
    keys(OLD)
    account.refresh_from_db()
    assert accounts.opened(account).api_key == "sk_test_very_secret"


def test_an_account_without_secrets_cannot_be_live(world: World, keys: Any) -> None:
    """The database itself refuses it, whoever asks."""
    for secrets in ({"api_key": "sk_live_1"}, {"notice_secrets": ["whsec_a"]}):
        with pytest.raises(IntegrityError), transaction.atomic():
            accounts.keep(world.amber, "live", provider="stripe", mode="live", **secrets)
    account = accounts.keep(
        world.amber, "live", provider="stripe", mode="live", api_key="sk_live_1", notice_secrets=["whsec_a"]
    )
    assert account.mode == "live"
