"""Levers for stories about statements: refunds that are really made, days that pass, statements as a provider tells."""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.db import connection

from runtime_app import accounts, looks, statements, watch
from runtime_app.adapters.payments import types
from runtime_app.adapters.payments.types import LineKind
from runtime_app.models import Account, Case, Operation, StatementDay, StatementLine, Task, Tenant
from runtime_app.money import Money
from runtime_app.statements import calendar, compare, days, ingest
from runtime_app.statements.ingest import Taken
from runtime_app.statements.overviews import Overview
from tests.world import World

_numbers = itertools.count(1)
ACTOR = "test"


@dataclass
class Books:
    world: World
    account: Account = field(init=False)
    day: date = field(init=False)

    def __post_init__(self) -> None:
        for tenant in (self.world.amber, self.world.birch):
            self.register(tenant)
        self.account = Account.objects.get(tenant=self.world.amber, ref="stripe")
        self.day = calendar.today(self.account, calendar.now())

    def register(self, tenant: Tenant) -> None:
        """A key of its own, so that the provider shows the tenant's own things only."""
        key = f"sk_test_{tenant.slug}"
        accounts.keep(tenant, "stripe", provider="stripe", api_key=key, base_url=self.world.sandbox.url,
                      notice_secrets=[f"whsec_{tenant.slug}"], is_default=True)
        told = self.world.sandbox.control("POST", "/accounts", {"tenant": tenant.slug, "api_key": key})
        assert told.status_code < 300, told.text

    def refund(self, minor: int = 2500, *, captured: int = 10_000) -> Operation:
        """A refund that is asked for and done."""
        task = self.world.ask(self.world.order(captured), minor)
        self.world.finish(task)
        return self.world.operation(task)

    def in_doubt(self, minor: int = 2500, fault: str = "F3", **parameters: Any) -> Operation:
        """A refund whose answer is lost; nobody asks again by itself for an hour."""
        self.world.retime(reconcile_after=[3600.0], reconcile_every=3600.0)
        order = self.world.order()
        self.world.sandbox.fault(fault, match={"payment_ref": f"pi_{order}"}, **parameters)
        task = self.world.ask(order, minor)
        self.world.until(lambda: Operation.objects.filter(task=task, state="unknown").exists())
        return self.world.operation(task)

    def next_day(self, days: int = 1) -> None:
        """Move the database's clock on to the provider's noon; what the sandbox has booked is of the past then."""
        now = calendar.now()
        target = calendar.window(self.account, calendar.today(self.account, now) + timedelta(days=days))[0]
        self.world.clock(seconds=(target - now).total_seconds() + 12 * 3600)

    def round(self) -> int:
        """One daily round: the rows of days that are over, and everything that is due."""
        statements.open_days()
        taken = 0
        while got := statements.work(self.world.ports(), actor=ACTOR, limit=20):
            taken += got
            if taken > 200:
                break
        return taken

    def read(self, day: date | None = None) -> Taken:
        """Read a day from the provider now, whatever is due."""
        wanted = day or self.day
        told = self.world.ports().providers["stripe"].read_statement(
            accounts.opened(self.account), day=wanted, deadline=types.Deadline.after(20))
        assert isinstance(told, types.Statement), told
        return ingest.take(self.account, told, actor=ACTOR, day=wanted)

    def take(self, *lines: types.StatementLine, **facts: Any) -> Taken:
        """A statement that says just this, once its day is over."""
        told = self.statement(*lines, **facts)
        while not calendar.is_over(self.account, told.day):
            self.next_day()
        taken = ingest.take(self.account, told, actor=ACTOR)
        assert taken.refused == "", taken
        return taken

    def days_after(self, count: int) -> date:
        return self.day + timedelta(days=count)

    def statement(self, *lines: types.StatementLine, **facts: Any) -> types.Statement:
        said = [str(line) for line in lines] + [str(facts)]
        known: dict[str, Any] = {"day": self.day, "source": "list", "count_told": len(lines)}
        return types.Statement(
            lines=lines, sha256=hashlib.sha256("|".join(said).encode()).hexdigest(), **known | facts)

    def line(self, operation: Operation | None = None, minor: int | None = None, **facts: Any) -> types.StatementLine:
        """A booking, by default exactly what this operation should have made."""
        out = minor if minor is not None else -(operation.amount_minor if operation else 2500)
        told: dict[str, Any] = {
            "ref": f"txn_{next(_numbers)}", "kind": LineKind.REFUND if out < 0 else LineKind.REFUND_FAILED,
            "amount": Money(out, "USD"), "occurred_at": datetime.combine(self.day, datetime.min.time(), UTC)
            + timedelta(hours=12), "provider_ref": operation.provider_ref if operation else f"re_x{next(_numbers)}",
            "our_ref": str(operation.id) if operation else None,
            "payment_ref": operation.payment_ref if operation else "pi_unknown", "live": False,
        }
        told |= facts
        return types.StatementLine(
            raw_sha256=hashlib.sha256(repr(sorted(told.items(), key=str)).encode()).hexdigest(), **told)

    def again(self, day: date | None = None) -> None:
        """Compare a day once more, as the daily round does."""
        compare.run(self.row(day), actor=ACTOR, ports=self.world.ports())

    def look(self) -> None:
        """Let workers do what they were asked for: tasks, payments, operations with a proved outcome."""
        self.world.work()
        ports = self.world.ports()
        for work in (looks.work, watch.watch):
            work(ports, actor=ACTOR, limit=50)
        self.world.work()
        connection.close_if_unusable_or_obsolete()

    def row(self, day: date | None = None) -> StatementDay:
        return StatementDay.objects.select_related("account").get(account=self.account, day=day or self.day)

    def classes(self, day: date | None = None) -> dict[str, int]:
        return dict(compare.classes(self.row(day)))

    def overview(self, day: date | None = None) -> Overview:
        return days.overview(self.account, day or self.day)

    def close(self, day: date | None = None, *, seen: str | None = None) -> StatementDay:
        """Olga closes the day as it is now."""
        if seen is None:
            compare.run(self.row(day), actor=ACTOR)
            seen = self.overview(day).sha256
        return days.close(self.world.olga, self.row(day).id, seen_sha256=seen)

    def case(self, class_name: str) -> Case:
        return Case.objects.get(tenant=self.world.amber, class_name=class_name)

    def cases(self) -> list[str]:
        return sorted(Case.objects.filter(state="open").values_list("class_name", flat=True))

    def stored(self, told: types.StatementLine) -> StatementLine:
        return StatementLine.objects.get(account=self.account, ref=told.ref)

    def task(self, operation: Operation) -> Task:
        return Task.objects.get(id=operation.task_id)
