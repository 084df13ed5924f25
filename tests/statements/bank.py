"""Amber's account at a real mock-bank whose clock stands at today, so that its days are ours."""

from __future__ import annotations

from datetime import date, timedelta

from runtime_app import accounts
from runtime_app.models import Operation, Task
from runtime_app.statements import calendar
from tests.adapters.bank import DESTINATION, NOWHERE, SETTINGS
from tests.adapters.bank_process import BankProcess
from tests.statements.books import Books
from tests.world import World


def next_tuesday(world: World) -> date:
    """Move the database's clock to a Tuesday whose week has no bank holiday, and return it."""
    today = calendar.now().date()
    ahead = (1 - today.weekday()) % 7
    while _is_near_a_holiday(today + timedelta(days=ahead)):
        ahead += 7
    world.clock(days=ahead)
    return today + timedelta(days=ahead)


def _is_near_a_holiday(day: date) -> bool:
    """Christmas and the new year; Easter and the first of May."""
    return (day.month, day.day) >= (12, 18) or (1, 1) <= (day.month, day.day) <= (1, 6) or day.month == 4 or (
        day.month == 3 and day.day > 12) or (day.month == 5 and day.day < 6)


class BankBooks(Books):
    """The same levers, at the bank."""

    def __init__(self, books: Books, day: date, bank: BankProcess | None = None) -> None:
        """Without a process only files can be taken, and nobody answers."""
        self.world, self.bank = books.world, bank
        self.world.retime(connect_timeout=1.0, read_timeout=4.0)  # a busy machine is no bank that does not answer
        self.account = accounts.keep(books.world.amber, "bank", provider="bank", settings=SETTINGS,
                                     base_url=bank.url if bank is not None else NOWHERE)
        self.day = day

    def refund(self, minor: int = 2500, *, captured: int = 10_000) -> Operation:
        """A transfer that the bank has taken; it is booked on the same day, and proved by the next look."""
        task = self.start(minor)
        taken = Operation.objects.filter(task=task, state__in=("pending", "succeeded"))
        self.world.until(taken.exists)
        return self.world.operation(task)

    def start(self, minor: int) -> Task:
        order = f"ORD-B{calendar.now():%H%M%S%f}"
        told = self.world.sandbox.control("POST", "/orders", {
            "tenant": "amber", "order_ref": order, "currency": "EUR", "destination": DESTINATION,
            "payments": [{"payment_ref": f"pi_{order}", "captured_minor": 10_000, "account": "bank"}],
        })
        assert told.status_code == 201, told.text
        return self.world.ask(order, minor, currency="EUR")

    def next_day(self, days: int = 1) -> None:
        if self.bank is not None:
            self.bank.advance(days)
        super().next_day(days)
