"""A request that was frozen and proved not sent is sent later only as what is agreed on by then (M05, M15)."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

from runtime_app import accounts
from runtime_app.adapters.payments.types import NotSent, Observation
from runtime_app.models import Balance, Hold, Operation
from tests.attack.bent import bend
from tests.world import World

_NOTHING = Observation("(nothing was sent)", None, None, None, None, "", "")


class Wire:
    """What was handed to the provider; while `cut`, nothing arrives there. Requests say where the money is to go."""

    def __init__(self) -> None:
        self.cut = True
        self.tries = 0
        self.sent: list[tuple[str, bytes]] = []  # account and bytes

    def freeze(self, real: Any, *args: Any, destination: str | None = None, **kwargs: Any) -> Any:
        frozen = real(*args, destination=destination, **kwargs)
        body = frozen.body + f"&metadata[to]={destination}".encode()
        return replace(frozen, body=body, body_sha256=hashlib.sha256(body).hexdigest())

    def create_refund(self, real: Any, account: Any, request: Any, **kwargs: Any) -> Any:
        self.tries += 1
        if self.cut:
            return NotSent("refused", _NOTHING)
        self.sent.append((account.id, request.body))
        return real(account, request, **kwargs)


def test_an_approved_change_of_destination_is_where_the_money_goes(world: World) -> None:
    """The request was frozen for the old destination and never left. People then agree on the new one."""
    wire, order = Wire(), world.order()
    world.sandbox.patch_order(order, destination="Old-Street-1")
    task = world.ask(order, 6000)
    asked = world.approval(task)
    bend(world, payments={"freeze": wire.freeze, "create_refund": wire.create_refund})
    world.decide(world.ada, asked)
    world.until(lambda: wire.tries)
    world.sandbox.patch_order(order, destination="New-Street-2")
    again = world.approval(task)
    wire.cut = False
    world.decide(world.abel, again)
    world.finish(task)
    assert task.status == "completed" and len(world.effects(order)) == 1
    assert [b"New-Street-2" in body for _, body in wire.sent] == [True]
    assert Operation.objects.filter(task=task, state="succeeded").count() == 1


def test_what_did_not_change_is_sent_as_it_was_frozen(world: World) -> None:
    """One key for one refund, however often it did not leave: the provider would know it if it had."""
    wire, order = Wire(), world.order()
    task = world.ask(order, 1000)
    bend(world, payments={"freeze": wire.freeze, "create_refund": wire.create_refund})
    world.until(lambda: wire.tries > 1)
    wire.cut = False
    world.finish(task)
    assert task.status == "completed" and Operation.objects.filter(task=task).count() == 1


def test_a_refund_does_not_wander_to_an_account_that_became_the_default_meanwhile(world: World) -> None:
    """M15: it was approved, and its amount held, for the account that was the default one then."""
    wire, order = Wire(), world.order()
    wire.cut = False
    task = world.ask(order, 6000)
    world.decide(world.ada, world.approval(task))
    held = Hold.objects.get(task=task)
    accounts.keep(world.amber, "stripe", provider="stripe", api_key="sk_test_world", base_url=world.sandbox.url)
    accounts.keep(world.amber, "other", provider="stripe", api_key="sk_test_world", base_url=world.sandbox.url,
                  is_default=True)
    bend(world, payments={"freeze": wire.freeze, "create_refund": wire.create_refund})
    world.finish(task)
    assert task.status == "completed" and [account for account, _ in wire.sent] == ["stripe"]
    assert [(b.account, b.refunded_minor) for b in Balance.objects.all()] == [("stripe", 6000)]
    held.refresh_from_db()
    assert held.state == "consumed"


def test_an_order_that_names_another_account_is_judged_anew_before_anything_is_sent_there(world: World) -> None:
    """M15: nobody agreed that this account pays, and what may still be refunded there was never asked."""
    wire, order, named = Wire(), world.order(), ["stripe"]
    accounts.keep(world.amber, "other", provider="stripe", api_key="sk_test_world", base_url=world.sandbox.url)

    def read(real: Any, *args: Any, **kwargs: Any) -> Any:
        answer = real(*args, **kwargs)
        return replace(answer, payments=tuple(replace(p, account=named[0]) for p in answer.payments))

    task = world.ask(order, 6000)
    asked = world.approval(task)
    bend(world, payments={"freeze": wire.freeze, "create_refund": wire.create_refund}, orders={"read_order": read})
    world.decide(world.ada, asked)
    world.until(lambda: wire.tries)
    named[0], wire.cut = "other", False
    again = world.approval(task)
    assert wire.sent == [] and Hold.objects.get(task=task).state == "released"
    world.decide(world.abel, again)
    world.finish(task)
    assert task.status == "completed" and [account for account, _ in wire.sent] == ["other"]
    found = {b.account: (b.reserved_minor, b.refunded_minor) for b in Balance.objects.all()}
    assert found == {"stripe": (0, 0), "other": (0, 6000)}
    assert Operation.objects.get(task=task, state="succeeded").account == "other"
