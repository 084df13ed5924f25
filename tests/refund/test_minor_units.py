"""C41: every amount reaches the provider in the units that it counts in, or is refused before anybody is asked."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs

import pytest
from django.test import Client

from runtime_app.models import Operation, Task
from tests.api.callers import Caller, fresh_key, refund
from tests.world import World


def _ask(world: World, currency: str, minor: Any, captured: int = 1_000_000) -> tuple[str, Any]:
    order = world.order(captured, currency=currency)
    body = refund(order, currency=currency, amount_minor=minor)
    return order, Caller(world.key).post("/tasks", body, key=fresh_key())


def _told(answer: Any) -> Any:
    return json.loads(answer.content)


def _wire(world: World, order: str) -> list[str]:
    """The amounts that the provider was sent for the order's payment."""
    sent = [r for r in world.sandbox.requests(payment_ref=f"pi_{order}") if r["method"] == "POST"]
    return [parse_qs(r["body"])["amount"][0] for r in sent]


@pytest.mark.parametrize(("currency", "minor", "wire", "shown"), [
    ("JPY", 500, "500", "500 JPY"), ("KWD", 1250, "1250", "1.250 KWD"), ("USD", 500, "500", "5.00 USD"),
    ("CLP", 990, "990", "990 CLP"), ("ISK", 500, "50000", "500 ISK"), ("UGX", 700, "70000", "700 UGX"),
    ("HUF", 1250, "1250", "12.50 HUF"), ("MGA", 1200, "12", "12.00 MGA"), ("TWD", 12345, "12345", "123.45 TWD"),
])
def test_the_provider_gets_exactly_its_own_units(
    world: World, client: Client, currency: str, minor: int, wire: str, shown: str
) -> None:
    """No factor of a hundred, no float; what is asked for is what is shown again."""
    world.amber.approval_threshold_minor = 10**12
    world.amber.save(update_fields=["approval_threshold_minor"])
    order, answer = _ask(world, currency, minor)
    assert answer.status_code == 202, answer.content
    task = Task.objects.get(id=_told(answer)["id"])
    world.finish(task)
    assert (task.status, _wire(world, order)) == ("completed", [wire])
    assert [(r["amount_minor"], r["currency"]) for r in world.effects(order)] == [(minor, currency)]
    assert _told(Caller(world.key).get(f"/tasks/{task.id}"))["amount_minor"] == minor
    client.force_login(world.sam, backend="django.contrib.auth.backends.ModelBackend")
    number, _, code = shown.partition(" ")
    page = client.get(f"/tasks/{task.id}/").content.decode()
    assert number in page and code in page


@pytest.mark.parametrize(("currency", "minor"), [("KWD", 1255), ("BHD", 5), ("MGA", 1250)])
def test_what_the_provider_cannot_hold_waits_for_another_amount(world: World, currency: str, minor: int) -> None:
    """Never rounded, and nobody is asked to approve it."""
    order = world.order(1_000_000, currency=currency)
    answer = Caller(world.key).post("/tasks", refund(order, currency=currency, amount_minor=minor), key=fresh_key())
    task = Task.objects.get(id=_told(answer)["id"])
    world.until(lambda: Task.objects.get(id=task.id).status == "waiting_input")
    task.refresh_from_db()
    assert list(task.state["waiting_for"]) == ["amount_minor"] and "Stripe" in task.state["waiting_for"]["amount_minor"]
    assert not Operation.objects.filter(task=task).exists() and _wire(world, order) == []


@pytest.mark.parametrize("amount", [500.5, 1.999, "500", True, 5e2, -500, 0, 10**16])
def test_more_decimals_or_another_type_is_refused_naming_the_field(world: World, amount: Any) -> None:
    _, answer = _ask(world, "JPY", amount)
    assert answer.status_code == 422
    assert [e["field"] for e in _told(answer)["errors"]] == ["amount_minor"]


@pytest.mark.parametrize("currency", ["XTS", "XXX", "ZZZ", "usd", "US$"])
def test_an_unknown_currency_is_refused_naming_the_field(world: World, currency: str) -> None:
    answer = Caller(world.key).post("/tasks", refund(world.order(), currency=currency), key=fresh_key())
    assert answer.status_code == 422
    assert [e["field"] for e in _told(answer)["errors"]] == ["currency"]
