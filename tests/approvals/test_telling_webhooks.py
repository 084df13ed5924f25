"""A tenant's own addresses are told: signed as receivers verify it, at least once, and never inside our network."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command
from standardwebhooks import Webhook, WebhookVerificationError

from approvals import telling, webhooks
from approvals.models import Approval, Delivery, WebhookEndpoint
from runtime_app import sealing
from runtime_app.adapters import hooks, wire
from runtime_app.addresses import is_public, unreachable, wrong
from runtime_app.errors import FieldErrors, Forbidden, NotFound
from tests.approvals.telling import Receiver, receiver, relay, send, tell
from tests.world import World


@pytest.fixture
def shop() -> Iterator[Receiver]:
    with receiver() as made:
        yield made


def asked(world: World) -> Approval:
    return world.approval(world.ask(world.order()))


def test_a_message_is_signed_with_the_secret_that_was_told_once(world: World, shop: Receiver) -> None:
    """Issue 4, point 6: Standard Webhooks, verified with the library that receivers use."""
    endpoint, secret = webhooks.add_endpoint(world.tom, world.amber, f"{shop.url}/approvals?of=amber")
    assert secret not in endpoint.secret_sealed and secret.startswith("whsec_")
    approval = asked(world)
    tell(world)
    [(path, headers, body)] = shop.got
    said = Webhook(secret).verify(body, headers)
    assert path == "/approvals?of=amber" and headers["webhook-id"] == str(Delivery.objects.get().id)
    assert said["type"] == "approval.asked" and said["data"] == {
        "tenant": "amber", "approval_id": str(approval.id), "task_id": str(approval.task_id), "state": "open",
        "order_ref": approval.task.order_ref, "amount_minor": 6000, "currency": "USD",
        "deadline_at": approval.deadline_at.isoformat(), "url": f"http://127.0.0.1:8000/approvals/{approval.id}/",
    }
    for changed in (body.replace(b"6000", b"6001"), body + b" "):
        with pytest.raises(WebhookVerificationError):
            Webhook(secret).verify(changed, headers)
    [shown] = telling.of_approval(approval)
    assert (shown.who, shown.how, shown.state) == ("127.0.0.1", "webhook", "sent")


def test_every_try_has_the_same_id(world: World, shop: Receiver) -> None:
    """At least once: so that a receiver can tell a repetition from news."""
    _, secret = webhooks.add_endpoint(world.tom, world.amber, shop.url)
    world.retime(tell_tries=4)
    approval = asked(world)
    shop.answers = [(500, {}, b"no"), (429, {"retry-after": "1"}, b""), (302, {"location": f"{shop.url}/else"}, b"")]
    errors = []
    for _ in range(4):
        tell(world)
        errors.append(telling.of_approval(approval)[0].last_error)
        world.clock(minutes=10)
    assert errors == ["It answered 500.", "It answered 429.", "It answered 302; redirects are not followed.", ""]
    assert len({headers["webhook-id"] for _, headers, _ in shop.got}) == 1 and len(shop.got) == 4
    assert {path for path, _, _ in shop.got} == {"/"}
    for _, headers, body in shop.got:
        Webhook(secret).verify(body, headers)


def test_a_receiver_that_always_fails_is_given_up(world: World, shop: Receiver) -> None:
    webhooks.add_endpoint(world.tom, world.amber, shop.url)
    world.retime(tell_tries=2)
    approval = asked(world)
    shop.answers = [(503, {}, b"")] * 5
    for _ in range(4):
        tell(world)
        world.clock(minutes=10)
    [shown] = telling.of_approval(approval)
    assert (shown.state, shown.tries, shown.last_error) == ("dead", 2, "It answered 503.") and len(shop.got) == 2


def test_a_redirect_into_our_network_is_not_followed(world: World, shop: Receiver) -> None:
    with receiver() as inner:
        webhooks.add_endpoint(world.tom, world.amber, shop.url)
        asked(world)
        shop.answers = [(status, {"location": f"{inner.url}/admin"}, b"") for status in (301, 302, 303, 307, 308)]
        for _ in range(5):
            tell(world)
            world.clock(minutes=30)
        assert len(shop.got) == 5 and not inner.got


def test_outside_of_a_trial_nothing_inside_our_network_is_connected_to(
    world: World, shop: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the name led elsewhere while it was judged: the connected socket itself is judged again."""
    def post(url: str) -> str | None:
        return hooks.post(url, "whsec_" + "a" * 32, "1", b"{}", connect=1, read=1, inside=False)

    port = shop.url.rpartition(":")[2]
    assert post(f"https://127.0.0.1:{port}/") == "This address leads into a network that is not public."
    monkeypatch.setattr(hooks, "unreachable", lambda url, *, inside: None)
    assert "NotPublic" in str(post(f"http://127.0.0.1:{port}/")) and not shop.got
    seen = wire.exchange("POST", shop.url, headers={}, body=b"", connect=1, read=1, public=True)
    assert seen.untouched and seen.status is None and not shop.got
    assert post("https://127.0.0.1:1/") is not None


@pytest.mark.parametrize("address", [
    "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0", "100.64.0.1", "224.0.0.1",
    "::1", "fe80::1%eth0", "fc00::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::",
    "ff02::1", "nonsense", "",
])
def test_addresses_of_our_own_network_are_none_of_the_public_internet(address: str) -> None:
    assert not is_public(address)


def test_addresses_of_the_public_internet_are_found_to_be_so() -> None:
    assert all(map(is_public, ("93.184.216.34", "2606:2800:220:1::1", "::ffff:8.8.8.8", "64:ff9b::808:808")))


@pytest.mark.parametrize(("url", "word"), [
    ("http://shop.example/", "https"), ("ftp://shop.example/", "https"), ("javascript:alert(1)", "https"),
    ("https://", "no host"), ("https://name:word@shop.example/", "Leave out"), ("https://shop.example/#x", "Leave out"),
    ("https://shop.example:99999/", "not an address"), ("https://shop.example:0/", "no port"),
    ("https://[::1/", "not an address"), ("https://shop.example/a b", "blanks"),
    ("https://sh\u00f6p.example/", "ASCII"),
    ("https://shop.example/\x00", "blanks"), ("https://shop.example\\@127.0.0.1/", "blanks"),
    ("https://shop.example/" + "a" * 500, "at most 500"), ("", "https"),
])
def test_what_is_no_address_is_refused_in_words(url: str, word: str) -> None:
    assert word in str(wrong(url, inside=False))


def test_a_name_that_leads_into_our_network_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """One address of several is enough."""
    def lead(*addresses: str) -> None:
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443)) for address in addresses]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_more: found)

    lead("93.184.216.34")
    assert unreachable("https://shop.example/", inside=False) is None
    lead("93.184.216.34", "10.0.0.7")
    assert "not public" in str(unreachable("https://shop.example/", inside=False))
    assert unreachable("https://shop.example/", inside=True) is None


def test_only_an_admin_of_the_tenant_adds_and_drops_addresses(world: World, settings: Any) -> None:
    for person in (world.ada, world.ava, world.rita):
        with pytest.raises(Forbidden):
            webhooks.add_endpoint(person, world.amber, "http://127.0.0.1:9/")
    with pytest.raises(NotFound):
        webhooks.add_endpoint(world.bea, world.amber, "http://127.0.0.1:9/")
    endpoint, secret = webhooks.add_endpoint(world.tom, world.amber, "http://127.0.0.1:9/")
    with pytest.raises(FieldErrors) as twice:
        webhooks.add_endpoint(world.tom, world.amber, "http://127.0.0.1:9/")
    assert "already" in twice.value.errors["url"]
    for person, refusal in ((world.ada, Forbidden), (world.bea, NotFound)):
        with pytest.raises(refusal):
            webhooks.drop_endpoint(person, endpoint.id)
    webhooks.drop_endpoint(world.tom, endpoint.id)
    with pytest.raises(NotFound):
        webhooks.drop_endpoint(world.tom, endpoint.id)
    again, other = webhooks.add_endpoint(world.tom, world.amber, "http://127.0.0.1:9/")
    assert other != secret and again.is_active and WebhookEndpoint.objects.count() == 1
    for number in range(webhooks.MOST - 1):
        webhooks.add_endpoint(world.tom, world.amber, f"http://127.0.0.1:9/{number}")
    with pytest.raises(FieldErrors, match="cannot be accepted"):
        webhooks.add_endpoint(world.tom, world.amber, "http://127.0.0.1:9/more")
    settings.ENVIRONMENT = "live"
    with pytest.raises(FieldErrors) as inside:
        webhooks.add_endpoint(world.tom, world.amber, "https://127.0.0.1:9/live")
    assert "not public" in inside.value.errors["url"]


def test_what_waits_for_an_address_that_was_dropped_is_not_sent(world: World, shop: Receiver) -> None:
    endpoint, _ = webhooks.add_endpoint(world.tom, world.amber, shop.url)
    asked(world)
    relay()
    webhooks.drop_endpoint(world.tom, endpoint.id)
    send(world)
    assert not shop.got and Delivery.objects.get().state == "dropped"


def test_another_tenants_addresses_hear_nothing(world: World, shop: Receiver) -> None:
    webhooks.add_endpoint(world.bea, world.birch, shop.url)
    asked(world)
    tell(world)
    assert not shop.got and not Delivery.objects.exists()


def test_of_a_long_answer_little_is_read(world: World, shop: Receiver) -> None:
    webhooks.add_endpoint(world.tom, world.amber, shop.url)
    asked(world)
    shop.answers = [(200, {}, b"x" * 5_000_000)]
    tell(world)
    assert Delivery.objects.get().state == "sent" and len(shop.got) == 1
    seen = wire.exchange("POST", shop.url, headers={}, body=b"", connect=1, read=5, cut_at=1000)
    assert seen.status == 204
    shop.answers = [(200, {}, b"x" * 5_000_000)]
    seen = wire.exchange("POST", shop.url, headers={"content-length": "0"}, body=b"", connect=1, read=5, cut_at=1000)
    assert seen.status == 200 and len(seen.content) <= 65536


def test_secrets_of_addresses_move_to_a_new_key_too(world: World, shop: Receiver, settings: Any) -> None:
    """`manage.py reseal`: with the old key gone, messages are still signed with the same secret."""
    _, secret = webhooks.add_endpoint(world.tom, world.amber, shop.url)
    old, new = settings.SEAL_KEYS[0], "bmV3LW5ldy1uZXctbmV3LW5ldy1uZXctbmV3LW5ldy0="
    try:
        settings.SEAL_KEYS = [new, old]
        sealing.forget()
        call_command("reseal")
        settings.SEAL_KEYS = [new]
        sealing.forget()
        asked(world)
        tell(world)
        [(_, headers, body)] = shop.got
        assert json.loads(body) == Webhook(secret).verify(body, headers)
    finally:
        settings.SEAL_KEYS = [old]
        sealing.forget()


def test_a_secret_that_no_key_opens_is_said_and_tried_again(world: World, shop: Receiver) -> None:
    endpoint, _ = webhooks.add_endpoint(world.tom, world.amber, shop.url)
    WebhookEndpoint.objects.filter(pk=endpoint.pk).update(secret_sealed="gAAAA")
    approval = asked(world)
    tell(world)
    [shown] = telling.of_approval(approval)
    assert shown.state == "waiting" and "cannot be opened" in shown.last_error and not shop.got
