"""What an administrator may do to an account, and what the account does not give away (M31, M36)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runtime_app import account_changes, accounts
from runtime_app.account_changes import Wanted
from runtime_app.errors import FieldErrors
from runtime_app.models import Account
from tests.world import World


def _account(world: World) -> Account:
    return Account.objects.get(tenant=world.amber, ref="stripe")


def _change(world: World, wanted: Wanted) -> Account:
    account = _account(world)
    seen = account_changes.state_sha256(account)
    return account_changes.change(world.amber, account.pk, wanted, seen_sha256=seen, actor="person:tom")


def test_a_key_is_not_sent_to_an_address_that_was_filled_in_after_it(world: World) -> None:
    """It is stored sealed and never shown again: not even to a server of the administrator's own."""
    kept = Wanted(base_url=world.sandbox.url, is_default=True)
    _change(world, replace(kept, time_zone="Europe/Berlin"))
    assert accounts.opened(_account(world)).api_key == "sk_test_world"
    _change(world, replace(kept, base_url="http://collector.example"))
    assert accounts.opened(_account(world)).api_key == ""
    _change(world, kept)
    assert accounts.opened(_account(world)).api_key == "", "and going back does not bring it back"


def test_an_account_that_moves_real_money_changes_its_address_only_with_its_key(world: World) -> None:
    """Such an account is never without a key."""
    Account.objects.filter(pk=_account(world).pk).update(mode="live", base_url="")
    with pytest.raises(FieldErrors) as refused:
        _change(world, Wanted(mode="live", base_url="https://collector.example", is_default=True))
    assert "an API key is missing" in refused.value.errors["mode"]
    assert accounts.opened(_account(world)).api_key == "sk_test_world" and _account(world).base_url == ""
