"""What RQ calls. The dotted paths are wire formats: jobs of older releases name them, and arguments stay tolerant."""

from __future__ import annotations

import os
import socket
import time
from functools import cache, partial
from typing import Any

from django.conf import settings

from approvals import reminders, rounds, telling
from runtime_app import looks, notices, outbox, statements, sweep, watch
from runtime_app.adapters import hooks, orders, payments
from runtime_app.adapters.payments.types import Deadline
from runtime_app.bell import ring
from runtime_app.drain import Drain
from runtime_app.outbox import Due
from runtime_app.reconciliation.schedule import backoff
from runtime_app.workflows.types import Ports

_AT_ONCE = 5  # each may wait for an order system that hangs, and meanwhile this worker claims no task


@cache
def ports() -> Ports:
    timing = settings.TIMING
    return Ports(
        providers={
            name: payments.build(name, connect_timeout=timing.connect_timeout, read_timeout=timing.read_timeout)
            for name in payments.PROVIDERS
        },
        orders=orders.build(
            settings.ORDERS["system"], base_url=settings.ORDERS["base_url"], connect_timeout=timing.connect_timeout
        ),
        timing=timing, deadline=Deadline(0.0), sender_holds=lambda operation_id: False,
        post=partial(
            hooks.post, connect=timing.connect_timeout, read=timing.read_timeout, inside=settings.ENVIRONMENT != "live"
        ),
    )


@cache
def drain(lane: str) -> Drain:
    """This process's drain of the lane, with its threads, connections and sender's locks."""
    worker = f"{socket.gethostname()}:{os.getpid()}"
    return Drain(lane=lane, worker=worker, ports=ports(), batch=settings.WORKER_BATCH, effects=settings.WORKER_EFFECTS)


def advance(lane: str = "default", **_later: Any) -> bool:
    """Work on the lane until nothing is due or the time is up; rings again for what is left."""
    own = drain(lane)
    more = own.run(settings.TIMING.drain_budget, lambda: ring(lane))
    sweep.begin(ports(), actor=f"worker:{own.worker}", stop=own.stop)
    relay()
    look_around(lane)
    if more:
        ring(lane)
    return more


def relay() -> int:
    """Deliver what the outbox holds, until the time is up; returns how many intents were taken."""
    timing, taken = settings.TIMING, 0
    until = time.monotonic() + timing.drain_budget
    deliver = {"order.record_refund": _record_refund, telling.KIND: telling.expand}
    while got := outbox.relay(deliver, limit=_AT_ONCE, seconds=timing.lease, retry=lambda n: backoff(timing, n)):
        taken += got
        if got < _AT_ONCE or time.monotonic() >= until:
            break
    return taken


def look_around(lane: str) -> None:
    """Work through what is not a task's own step, one after another, until the time is up: notices, then looks at
    payments and at operations whose outcome was proved before, which notices and statements ask for, then statements,
    then approvals, and what people are told of them.
    """
    until = time.monotonic() + settings.TIMING.drain_budget
    actor = f"worker:{drain(lane).worker}"
    for work in (notices.work, looks.work, watch.watch, statements.work, rounds.work, reminders.work, telling.work):
        while work(ports(), actor=actor, limit=1) and time.monotonic() < until:
            pass


def _record_refund(intent: Due) -> str | None:
    said = intent.payload
    return ports().orders.record_refund(
        said["tenant"], said["order_ref"], operation_id=said["operation_id"], payment_ref=said["payment_ref"],
        amount_minor=said["amount_minor"], status=said["status"], provider_ref=said["provider_ref"], timeout=10.0,
    )
