"""A provider that cannot be asked about a refund: what its statement shows is the answer, by the same table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from runtime_app import accounts
from runtime_app.adapters import payments
from runtime_app.adapters.payments.memory import MemoryPayments
from runtime_app.adapters.payments.memory_queries import seen
from runtime_app.adapters.payments.types import (
    Capabilities,
    Deadline,
    Inconclusive,
    ProviderAccount,
    RefundStatus,
    Statement,
)
from runtime_app.models import Balance, Operation
from runtime_app.money import Money
from runtime_app.statements import calendar, ingest, reach
from tests.statements.books import ACTOR, Books


class Mute(MemoryPayments):
    """It takes refunds and sends statements, and answers no question."""

    def capabilities(self, account: ProviderAccount) -> Capabilities:
        return replace(super().capabilities(account), lookup="none", reads_payments=False, sweeps=False,
                       replays="none", key_window=None)

    def find_refunds(self, account: ProviderAccount, **asked: Any) -> Inconclusive:
        return Inconclusive("this provider cannot be asked", seen(None))


class MuteBooks(Books):
    def __init__(self, books: Books, provider: Mute) -> None:
        self.world, self.provider, self.day = books.world, provider, books.day
        self.account = accounts.keep(books.world.amber, "mute", provider="mute")

    def next_day(self, days: int = 1) -> None:
        super().next_day(days)
        moment = calendar.now()  # read here: it is asked for in threads that have no database
        self.provider.now = lambda: moment

    def lost(self, minor: int = 2500, fault: str = "lost_after", moves: int | None = None) -> Operation:
        """A refund whose answer is lost, of which the provider moves this much."""
        order = f"ORD-{uuid4().hex[:10]}"
        told = self.world.sandbox.control("POST", "/orders", {
            "tenant": "amber", "order_ref": order, "currency": "USD",
            "payments": [{"payment_ref": f"pi_{order}", "captured_minor": 10_000, "account": "mute"}],
        })
        assert told.status_code == 201, told.text
        self.provider.add_payment(f"pi_{order}", 10_000, "USD")
        self.provider.next_faults.append(fault)
        task = self.world.ask(order, minor)
        self.world.until(lambda: Operation.objects.filter(task=task, state="unknown").exists())
        operation = self.world.operation(task)
        if moves is not None:
            with self.provider._lock:
                self.provider._book(operation.payment_ref, Money(moves, "USD"), str(operation.id), "succeeded")
        return operation


@pytest.fixture
def mute(books: Books, monkeypatch: pytest.MonkeyPatch) -> Iterator[MuteBooks]:
    provider = Mute(remembers_keys=False)
    monkeypatch.setitem(payments.PROVIDERS, "mute", lambda connect, read: provider)
    reach.form_of.cache_clear()
    books.world.retime(handover=86400.0)
    yield MuteBooks(books, provider)
    reach.form_of.cache_clear()


def test_a_line_proves_what_nobody_can_be_asked(mute: MuteBooks) -> None:
    """Rows 1 to 8 with the line as the evidence of the end; RESOLVES_UNKNOWN, then MATCHED."""
    operation = mute.lost()
    mute.next_day()
    mute.round()
    mute.world.finish(mute.task(operation))
    operation.refresh_from_db()
    proof = operation.resolved_by
    assert proof is not None
    assert (operation.state, proof.kind, proof.finding) == ("succeeded", "statement_line", "found_succeeded")
    assert Balance.objects.get(payment_ref=operation.payment_ref).refunded_minor == 2500
    assert mute.task(operation).status == "completed" and mute.cases() == []
    mute.again()
    assert mute.classes() == {"MATCHED": 1} and mute.close().state == "closed"


def test_without_a_worker_in_reach_the_line_waits_for_one(mute: MuteBooks) -> None:
    """A door that takes a statement proves nothing; the round does."""
    operation = mute.lost()
    mute.next_day()
    told = mute.provider.read_statement(
        accounts.opened(mute.account), day=mute.day, deadline=Deadline.after(5))
    assert isinstance(told, Statement)
    ingest.take(mute.account, told, actor=ACTOR)
    operation.refresh_from_db()
    assert operation.state == "unknown" and mute.classes() == {"RESOLVES_UNKNOWN": 1}
    mute.round()
    operation.refresh_from_db()
    assert operation.state == "succeeded"


def test_a_line_of_another_amount_is_a_mismatch_by_row_7(mute: MuteBooks) -> None:
    operation = mute.lost(fault="lost_before", moves=2400)
    mute.next_day()
    mute.round()
    mute.round()
    operation.refresh_from_db()
    assert operation.state == "unknown" and mute.cases() == ["AMOUNT_MISMATCH"]
    mute.again()
    assert mute.classes() == {"AMOUNT_UNDER": 1} and mute.cases() == ["AMOUNT_MISMATCH"]
    assert mute.overview().stops == ()


def test_two_lines_are_a_duplicate_by_row_8(mute: MuteBooks) -> None:
    operation = mute.lost(moves=2500)
    mute.next_day()
    mute.round()
    mute.again()
    operation.refresh_from_db()
    assert operation.state == "succeeded" and mute.cases() == ["DUPLICATE_EXECUTION"]
    assert Balance.objects.get(payment_ref=operation.payment_ref).refunded_minor == 5000
    mute.again()
    assert mute.classes() == {"MATCHED": 1, "DUPLICATE_EXECUTION": 1}


def test_a_line_that_went_out_and_came_back_is_declined_by_row_6(mute: MuteBooks) -> None:
    operation = mute.lost()
    mute.provider.settle(mute.provider.refunds_of(operation.payment_ref)[0].ref, RefundStatus.FAILED)
    mute.next_day()
    mute.round()
    mute.again()
    operation.refresh_from_db()
    assert operation.state == "failed" and mute.task(operation).status == "failed"
    assert Balance.objects.get(payment_ref=operation.payment_ref).reserved_minor == 0
    assert mute.classes() == {"MATCHED": 2} and mute.cases() == []


def test_what_came_back_later_is_a_persons(mute: MuteBooks) -> None:
    """RETURNED without anybody to ask: nothing moves by itself."""
    operation = mute.lost()
    mute.next_day()
    mute.round()
    mute.provider.settle(mute.provider.refunds_of(operation.payment_ref)[0].ref, RefundStatus.FAILED)
    mute.next_day()
    mute.round()
    operation.refresh_from_db()
    assert operation.state == "succeeded" and mute.cases() == ["RETURNED"]
