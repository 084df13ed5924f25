"""The page of a tenant's addresses that are told of approvals."""

from __future__ import annotations

import re
from collections.abc import Callable

from approvals.models import WebhookEndpoint
from runtime_app import sealing
from runtime_app.models import User
from tests.console.conftest import Visitor
from tests.world import World

Visit = Callable[[User | None], Visitor]
PAGE = "/tenants/amber/webhooks/"


def test_an_address_is_added_its_secret_shown_once_and_dropped(world: World, visit: Visit) -> None:
    tom = visit(world.tom)
    assert "No address yet" in tom.text(PAGE)
    added = tom.send(PAGE, {**tom.form(PAGE), "url": "http://127.0.0.1:9/in"})
    endpoint = WebhookEndpoint.objects.get()
    secret = sealing.unseal(endpoint.secret_sealed)
    assert added.status_code == 200 and secret in added.content.decode() and added.headers["Cache-Control"]
    page = tom.text(PAGE)
    assert secret not in page and "http://127.0.0.1:9/in" in page
    drop = f"{PAGE}{endpoint.id}/drop/"
    assert tom.get(drop).status_code == 405
    assert tom.send(drop, tom.form(PAGE, drop)).status_code == 302
    assert "No address yet" in tom.text(PAGE) and not WebhookEndpoint.objects.get().is_active
    assert tom.send(drop, tom.form(PAGE)).status_code == 404


def test_what_is_wrong_with_an_address_is_said_beside_it(world: World, visit: Visit) -> None:
    tom = visit(world.tom)
    for url in ("", "ftp://x.example/", "https://user:word@x.example/", "https://x.example/\x00", "h" * 2000):
        answer = tom.send(PAGE, {**tom.form(PAGE), "url": url})
        assert answer.status_code == 422 and re.search(r'id="id_url_error"', answer.content.decode()), url
    assert not WebhookEndpoint.objects.exists()


def test_only_admins_of_the_tenant_reach_it(world: World, visit: Visit) -> None:
    kept = {"url": "https://x.example/", "secret_sealed": "x", "created_by": world.tom}
    WebhookEndpoint.objects.create(tenant=world.amber, **kept)
    for person, status in ((world.ada, 403), (world.ava, 403), (world.bea, 404)):
        visitor = visit(person)
        assert visitor.get(PAGE).status_code == status
        assert "x.example" not in visitor.get(PAGE).content.decode()
    bea = visit(world.bea)
    own = "/tenants/birch/webhooks/"
    foreign = WebhookEndpoint.objects.get()
    for place in (PAGE, own):
        assert bea.send(f"{place}{foreign.id}/drop/", bea.form(own)).status_code == 404
    assert WebhookEndpoint.objects.get().is_active
