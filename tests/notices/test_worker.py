"""What a worker does with stored notices: none is lost with it, and one that cannot be acted on stops no other."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from runtime_app import jobs, notices, watch
from runtime_app.models import Account
from tests.notices.teller import Teller, event, handled
from tests.world import World


def _done(world: World) -> str:
    """The id of an operation that is done and proved."""
    task = world.ask(world.order(), 1000)
    world.finish(task)
    return str(world.operation(task).id)


def test_a_worker_that_dies_leaves_its_notice_to_another(
    world: World, stripe: Teller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P4: a notice in hand is due again when its worker has not come back."""
    told = stripe.tell(event(operation=_done(world), status="failed"))

    def dies(*args: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(watch, "hint", dies)
        notices.work(world.ports(), actor="worker:dies")
    assert not notices.is_anything_due()
    world.clock(seconds=world.timing.lease + 1)
    assert handled(world, told)[0].startswith("received: ")
    assert told.tries == 2


def test_a_notice_that_cannot_be_acted_on_stops_no_other(
    world: World, stripe: Teller, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bad = stripe.tell(event(operation=_done(world), status="failed"))
    good = stripe.tell(event())

    def raises(*args: Any) -> Any:
        raise RuntimeError("a defect")

    monkeypatch.setattr(watch, "hint", raises)
    while notices.work(world.ports(), actor="worker:in-test"):
        pass
    good.refresh_from_db()
    bad.refresh_from_db()
    assert good.outcome and not bad.outcome and bad.due_at is not None
    assert f"notice {bad.id} cannot be acted on" in caplog.text


def test_a_wake_job_acts_on_notices_and_on_the_looks_they_ask_for(
    world: World, stripe: Teller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One ring is enough: the notice, and then the look at what it hints at."""
    monkeypatch.setattr(settings, "TIMING", world.timing)
    order = world.order()
    task = world.ask(order, 1000)
    world.finish(task)
    refund = str(world.effects(order)[0]["id"])
    world.sandbox.set_refund(refund, "failed")
    told = stripe.tell(event(refund, status="failed"))
    jobs.look_around("default")
    told.refresh_from_db()
    assert told.outcome.startswith("received: it says failed")
    assert world.operation(task).state == "returned"


def test_a_closed_account_is_still_heard(world: World, stripe: Teller) -> None:
    """What was sent there before may come back long after; nothing new is sent."""
    operation = _done(world)
    Account.objects.filter(pk=stripe.account.pk).update(closed_at=world.amber.created_at, is_default=False)
    assert handled(world, stripe.tell(event(operation=operation, status="failed")))


def test_a_monitor_counts_the_notices_that_wait(
    world: World, stripe: Teller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "METRICS_TOKEN", "a-token")
    told = stripe.tell(event())
    assert 'countersign_notices_waiting{provider="stripe"} 1' in _metrics()
    assert handled(world, told)
    assert "countersign_notices_waiting{" not in _metrics()


def _metrics() -> str:
    return Client().get("/metrics", headers={"authorization": "Bearer a-token"}).content.decode()
