"""A tenant's accounts at providers: made, changed, brought live; secrets that go in and never come out."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest

from runtime_app import accounts
from runtime_app.models import Account, User
from tests.adapters.bank import SETTINGS
from tests.console.conftest import Visitor
from tests.world import World

Visit = Callable[[User | None], Visitor]
LIST, NEW = "/tenants/amber/accounts/", "/tenants/amber/accounts/new/"
KEY, SECRET = "sk_test_a_new_key_1", "whsec_a_new_secret_1"


def plain(text: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", text)).split())


def stripe(world: World) -> Account:
    return Account.objects.get(tenant=world.amber, ref="stripe")


def address(account: Account, act: str = "") -> str:
    return f"{LIST}{account.pk}/{act + '/' if act else ''}"


def send(visitor: Visitor, account: Account, act: str = "", **fields: Any) -> Any:
    hidden = visitor.form(address(account), address(account, act))
    return visitor.send(address(account, act), hidden | fields)


def facts(account: Account, **other: Any) -> dict[str, Any]:
    """The form of an account as it is, with these differences; a box that is not ticked sends nothing."""
    said = {"mode": account.mode, "base_url": account.base_url, "time_zone": account.time_zone,
            **({"is_default": "on"} if account.is_default else {}), **account.settings, **other}
    return {name: value for name, value in said.items() if value is not None}


def add(visitor: Visitor, provider: str = "stripe", **fields: Any) -> Any:
    hidden = visitor.form(f"{NEW}?provider={provider}", NEW)
    return visitor.send(NEW, {**hidden, "mode": "test", "time_zone": "UTC", **fields})


def test_an_administrator_adds_an_account_and_its_secrets_are_never_shown(world: World, visit: Visit) -> None:
    """Issue 5: stored sealed, shown nowhere; only that they are there, and since when."""
    tom = visit(world.tom)
    made = add(tom, ref="second", base_url=world.sandbox.url, api_key=KEY, notice_secret=SECRET)
    account = Account.objects.get(tenant=world.amber, ref="second")
    assert (made.status_code, made["Location"]) == (302, address(account))
    for path in (LIST, address(account), NEW + "?provider=stripe"):
        text = tom.text(path)
        assert KEY not in text and SECRET not in text, path
    assert KEY not in account.api_key_sealed and accounts.opened(account).notice_secrets == (SECRET,)
    text = tom.text(address(account))
    assert f"/hooks/stripe/{account.pk}" in text and "1 is good" in text and "Last changed" in text
    assert not account.is_default and stripe(world).is_default


def test_what_cannot_be_so_is_told_beside_its_field(world: World, visit: Visit) -> None:
    """Bad input: 422, the field named, nothing stored."""
    tom = visit(world.tom)
    good = {"ref": "x", "base_url": world.sandbox.url}
    for field, value, sentence in (
        ("ref", "Amber!", "Use small letters"), ("ref", "stripe", "has an account of this name already"),
        ("ref", "", "This field is required."), ("ref", "a" * 81, "Use small letters"),
        ("mode", "real", "Select a valid choice."), ("time_zone", "Mars/Base", "name of a time zone"),
        ("base_url", "ftp://x", "This is no address"), ("base_url", "https://u:p@bank.example", "without a name"),
        ("base_url", "https://", "This is no address"), ("base_url", "https://x:99999", "This is no address"),
        ("base_url", "https://b\u0430nk.example", "This is no address"), ("api_key", "short", "Use 8 to 500"),
        ("api_key", "sk_live_of_the_other_mode", "live mode"), ("notice_secret", "with space in it", "Use 8 to 500"),
    ):  # fmt: skip
        answer = add(tom, **{**good, field: value})
        text = answer.content.decode()
        assert answer.status_code == 422 and sentence in plain(text), (field, value)
        assert f'id="id_{field}_error"' in text, (field, value)
    assert Account.objects.filter(tenant=world.amber).count() == 1
    assert tom.client.get(NEW).status_code == 302 and tom.client.get(NEW + "?provider=nobody").status_code == 302


def test_a_bank_is_asked_for_its_own_settings(world: World, visit: Visit) -> None:
    """The adapter says what it misses; the page shows each beside its field."""
    tom = visit(world.tom)
    for wrong, field, sentence in (
        ({"debtor_iban": ""}, "debtor_iban", "This field is required."),
        ({"debtor_iban": "NL00MOCK0000000001"}, "debtor_iban", "its check digits must be right"),
        ({"debtor_bic": "X"}, "debtor_bic", "of 8 or 11 characters"), ({"base_url": ""}, "base_url", "the address of"),
        ({"debtor_currency": "EURO"}, "debtor_currency", "ISO 4217"),
    ):
        lacking = add(tom, "bank", **{"ref": "bank", "base_url": "https://bank.example", **SETTINGS, **wrong})
        text = lacking.content.decode()
        assert lacking.status_code == 422 and sentence in plain(text) and f'id="id_{field}_error"' in text, wrong
    assert add(tom, "bank", ref="bank", base_url="https://bank.example", **SETTINGS).status_code == 302
    made = Account.objects.get(tenant=world.amber, ref="bank")
    assert made.settings == {name: value for name, value in SETTINGS.items() if value}
    assert "This provider sends none." in tom.text(address(made))


def test_an_account_goes_live_only_with_both_secrets(world: World, visit: Visit) -> None:
    """Issue 5: a tenant with no secret cannot go live, and the sentence says which is missing."""
    tom = visit(world.tom)
    add(tom, ref="shop", base_url="https://api.example")
    account = Account.objects.get(tenant=world.amber, ref="shop")
    bare = send(tom, account, **facts(account, mode="live"))
    assert bare.status_code == 422 and "an API key and a notice secret is missing" in bare.content.decode()
    assert send(tom, account, "key", api_key="sk_live_0123456789").status_code == 422  # of the other mode
    assert send(tom, account, "key", api_key="rk_0123456789abc").status_code == 302
    half = send(tom, account, **facts(account, mode="live"))
    assert half.status_code == 422 and "a notice secret is missing" in half.content.decode()
    assert send(tom, account, "secret", notice_secret=SECRET).status_code == 302
    plain_http = send(tom, account, **facts(account, mode="live", base_url="http://api.example"))
    assert plain_http.status_code == 422 and "Use https" in plain_http.content.decode()
    assert send(tom, account, **facts(account, mode="live")).status_code == 302
    account.refresh_from_db()
    assert account.mode == "live" and ">Live<" in tom.text(LIST)


def test_a_notice_secret_is_replaced_with_an_overlap(world: World, visit: Visit) -> None:
    """Issue 5, F40: the newest two are good until the older one is dropped."""
    tom, account = visit(world.tom), stripe(world)
    assert "Drop the older" not in tom.text(address(account))
    assert send(tom, account, "secret", notice_secret=SECRET).status_code == 302
    account.refresh_from_db()
    assert accounts.opened(account).notice_secrets == (SECRET, "whsec_amber")
    again = send(tom, account, "secret", notice_secret=SECRET)
    assert again.status_code == 422 and "is good already" in again.content.decode()
    assert send(tom, account, "secret", notice_secret="whsec_third_one").status_code == 302
    account.refresh_from_db()
    assert accounts.opened(account).notice_secrets == ("whsec_third_one", SECRET)
    assert send(tom, account, "drop").status_code == 302
    account.refresh_from_db()
    assert accounts.opened(account).notice_secrets == ("whsec_third_one",)
    assert accounts.opened(account).api_key == "sk_test_world"  # the other secret is untouched


def test_a_form_that_was_read_before_somebody_changed_it_is_refused(world: World, visit: Visit) -> None:
    """Console rule 3: two administrators; the second is told, and nothing is lost."""
    tom, account = visit(world.tom), stripe(world)
    read = tom.form(address(account), address(account, "key"))
    assert send(tom, account, **facts(account, time_zone="Europe/Berlin")).status_code == 302
    lost = tom.send(address(account, "key"), {**read, "api_key": KEY})
    assert lost.status_code == 409 and "Somebody changed this account" in lost.content.decode()
    garbled = tom.send(address(account, "key"), {**read, "seen_sha256": "x" * 99, "api_key": KEY})
    assert garbled.status_code == 409
    dropped = tom.send(address(account, "drop"), tom.form(address(account), address(account, "key")))
    assert dropped.status_code == 409 and "no older notice secret" in dropped.content.decode()
    account.refresh_from_db()
    assert (account.time_zone, accounts.opened(account).api_key) == ("Europe/Berlin", "sk_test_world")


def test_one_account_is_the_default_and_giving_it_away_needs_another(world: World, visit: Visit) -> None:
    """Payments that name no account must not lose theirs."""
    tom, first = visit(world.tom), stripe(world)
    alone = send(tom, first, **facts(first, is_default=None))
    assert alone.status_code == 422 and "Make another account the default one" in alone.content.decode()
    add(tom, ref="second", base_url=world.sandbox.url, is_default="on")
    first.refresh_from_db()
    assert not first.is_default and Account.objects.get(tenant=world.amber, is_default=True).ref == "second"


def test_the_provider_stays_the_one_that_was_sent_to_while_an_outcome_is_open(world: World, visit: Visit) -> None:
    """M23: whoever was sent a refund must stay the one that is asked about it."""
    world.retime(reconcile_after=[3600])
    order = world.order()
    task = world.ask(order, 4000)
    world.sandbox.fault("F4", times=1, match={"payment_ref": f"pi_{order}"})
    world.until(lambda: "operation.unknown" in world.events(task))
    tom, account = visit(world.tom), stripe(world)
    moved = send(tom, account, **facts(account, base_url="https://elsewhere.example"))
    assert moved.status_code == 422 and "not proved yet" in moved.content.decode()
    assert send(tom, account, **facts(account, time_zone="Europe/Berlin")).status_code == 302
    world.clock(hours=2)
    world.finish(task)


def test_settings_that_the_form_does_not_know_are_kept(world: World, visit: Visit) -> None:
    """A change of the one thing is not the loss of another."""
    account = stripe(world)
    Account.objects.filter(pk=account.pk).update(settings={"created_filter": "off"})
    tom = visit(world.tom)
    assert send(tom, account, **facts(account, time_zone="Europe/Berlin")).status_code == 302
    account.refresh_from_db()
    assert account.settings == {"created_filter": "off"}


def test_only_administrators_of_the_tenant_come_in(world: World, visit: Visit) -> None:
    """M04, M21: foreign ones learn nothing, others of the tenant are refused; also by POST."""
    account, bea = stripe(world), visit(world.bea)
    birch = Account.objects.get(tenant=world.birch, ref="stripe")
    for path in (LIST, NEW, address(account), f"{LIST}{birch.pk}/"):
        assert bea.get(path).status_code == 404, path
        assert visit(world.olga).get(path).status_code == 403, path
    assert visit(world.tom).get(f"{LIST}{birch.pk}/").status_code == 404
    assert visit(world.tom).get(f"/tenants/birch/accounts/{birch.pk}/").status_code == 404
    bea.client.handler.enforce_csrf_checks = False
    for act in ("", "key", "secret", "drop"):
        assert bea.send(address(account, act), {"api_key": KEY}).status_code == 404, act
    tom = visit(world.tom)
    for act in ("", "key", "secret", "drop"):
        assert tom.send(address(account, act), {"api_key": KEY}).status_code == 403, act  # without the form's token
        assert not act or tom.get(address(account, act)).status_code == 405, act
    assert LIST in tom.text("/") and LIST not in visit(world.olga).text("/")


def test_secrets_that_cannot_be_opened_break_no_page_and_can_be_set_anew(world: World, visit: Visit) -> None:
    """A sealing key that is gone: the pages say so, and both secrets are given again, one after the other."""
    account, gone = stripe(world), "gAAAA-not-ours"
    Account.objects.filter(pk=account.pk).update(notice_secrets_sealed=gone, api_key_sealed=gone)
    tom = visit(world.tom)
    assert "cannot be opened" in tom.text(LIST) and "cannot be opened" in tom.text(address(account))
    assert visit(world.olga).get("/reconciliation/").status_code == 200
    assert tom.send(address(account, "drop"), tom.form(address(account), address(account, "key"))).status_code == 422
    assert send(tom, account, "key", api_key=KEY).status_code == 302
    assert send(tom, account, "secret", notice_secret=SECRET).status_code == 302
    account.refresh_from_db()
    opened = accounts.opened(account)
    assert (opened.api_key, opened.notice_secrets) == (KEY, (SECRET,))


def test_every_change_is_logged_with_who_and_without_what_is_secret(
    world: World, visit: Visit, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever looks for it later finds who changed what."""
    with caplog.at_level("INFO", logger="runtime_app.account_changes"):
        assert send(visit(world.tom), stripe(world), "key", api_key=KEY).status_code == 302
    said = "\n".join(record.getMessage() for record in caplog.records)
    assert f"account stripe of tenant {world.amber.id} api key replaced by person:{world.tom.pk}:tom" in said
    assert KEY not in said
