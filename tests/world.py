"""The people, tenants and engine that tests talk about.

Amber is the tenant the stories happen in; Birch is another, whose people must see nothing of it. In Amber, Rita asks,
Ada and Abel approve, Sam supports, Olga operates, Tom administers and Ava audits. Bea is of Birch and may do anything
there. Everything is really committed; the `world` fixture empties the tables afterwards.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.db import connection
from django.db.models import F

from approvals import decisions
from approvals.decisions import Outcome
from approvals.models import Approval
from runtime_app import accounts, jobs, members, tasks
from runtime_app.adapters import orders, payments
from runtime_app.chronicle import Say
from runtime_app.drain import Drain
from runtime_app.models import Event, EventPayload, Operation, RuntimeClock, Task, Tenant, User
from runtime_app.states import FINAL
from runtime_app.tasks import Request
from runtime_app.timing import Timing
from runtime_app.workflows.types import Ports
from tests.sandbox_process import SandboxProcess

PASSWORD = "correct-horse-9"
QUICK: dict[str, object] = {
    "lease": 6.0, "connect_timeout": 0.5, "read_timeout": 1.0, "send_margin": 0.2, "clock_poll": 0.1,
    "drain_budget": 5.0, "retry_first": 0.05, "retry_most": 0.5,
    "reconcile_after": [0.05, 0.1, 0.2], "reconcile_every": 0.3,
    "pending_after": [0.1], "pending_every": 0.2, "max_in_flight": 3.0, "absent_age": 0.5, "absent_count": 3,
    "late_watch_every": 0.2, "look_rate": 500.0, "look_burst": 500.0, "closed_first": 0.1, "closed_most": 0.3,
}
TABLES = (
    "approvals_decision", "approvals_approval", "runtime_app_statementline", "runtime_app_statement",
    "runtime_app_statementday", "runtime_app_notice", "runtime_app_paymentlook", "runtime_app_caseentry",
    "runtime_app_accountpace", "runtime_app_intent", "runtime_app_hold", "runtime_app_balance",
    "runtime_app_evidence", "runtime_app_case", "runtime_app_call", "runtime_app_operation", "runtime_app_step",
    "runtime_app_attempt",
    "runtime_app_eventpayload", "runtime_app_event", "runtime_app_message", "runtime_app_task", "runtime_app_session",
    "runtime_app_account", "runtime_app_serviceaccount", "runtime_app_membership", "runtime_app_tenantusergrant",
    "runtime_app_tenantgroupgrant",
    "runtime_app_tenant", "runtime_app_user_groups", "runtime_app_user_user_permissions", "auth_group_permissions",
    "auth_group", "runtime_app_user", "runtime_clock", "django_session",
)


def empty_tables() -> None:
    """Empty what tests fill. The append-only triggers refuse it to everybody but a superuser who says so."""
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute(f"TRUNCATE {', '.join(TABLES)} CASCADE")
        cursor.execute("SET session_replication_role = origin")


@dataclass
class World:
    sandbox: SandboxProcess
    timing: Timing = field(default_factory=lambda: Timing().with_values(QUICK))

    def __post_init__(self) -> None:
        RuntimeClock.objects.get_or_create(id=1)
        self.amber = members.found_tenant("amber", "Amber Traders", approval_threshold_minor=5000)
        self.birch = members.found_tenant("birch", "Birch & Sons", approval_threshold_minor=5000)
        self.rita = self._person("rita", "Rita Moss", "requester")
        self.ada = self._person("ada", "Ada Stone", "approver")
        self.abel = self._person("abel", "Abel Reed", "approver")
        self.sam = self._person("sam", "Sam Field", "support")
        self.olga = self._person("olga", "Olga Brook", "operator")
        self.tom = self._person("tom", "Tom Hill", "tenant_admin")
        self.ava = self._person("ava", "Ava Glen", "auditor")
        self.bea = members.add_person(
            self.birch, "bea", PASSWORD, ["requester", "approver", "support", "operator", "tenant_admin", "auditor"],
            full_name="Bea Birch",
        )
        self.account, self.key = members.issue_key(self.amber, "shop")
        self.birch_account, self.birch_key = members.issue_key(self.birch, "shop")
        for tenant in (self.amber, self.birch):
            self.stripe = accounts.keep(
                tenant, "stripe", provider="stripe", api_key="sk_test_world", base_url=self.sandbox.url,
                notice_secrets=[f"whsec_{tenant.slug}"], is_default=True,
            )
        self.drain = self.worker("in-test")

    def _person(self, username: str, full_name: str, role: str) -> User:
        return members.add_person(
            self.amber, username, PASSWORD, [role], full_name=full_name, time_zone="Europe/Berlin"
        )

    def ports(self) -> Ports:
        base = jobs.ports()
        return replace(
            base, timing=self.timing,
            providers={
                name: payments.build(
                    name, connect_timeout=self.timing.connect_timeout, read_timeout=self.timing.read_timeout
                )
                for name in payments.PROVIDERS
            },
            orders=orders.build("sandbox", base_url=self.sandbox.url, connect_timeout=self.timing.connect_timeout),
        )

    def worker(self, name: str) -> Drain:
        return Drain(lane="default", worker=name, ports=self.ports(), batch=20, effects=4)

    def retime(self, **values: object) -> None:
        """Go on with other timing, for example `retime(reconcile_after=[60])`."""
        self.drain.close()
        self.timing = self.timing.with_values(values)
        self.drain = self.worker("in-test")

    def order(self, captured: int = 10000, *, currency: str = "USD", tenant: Tenant | None = None) -> str:
        """A fresh order with one payment of this amount; the payment is `pi_` and the order's reference."""
        ref = f"ORD-{uuid4().hex[:10]}"
        self.sandbox.order(ref, tenant=(tenant or self.amber).slug, currency=currency, payments={f"pi_{ref}": captured})
        return ref

    def ask(self, order: str, amount: int | None = 6000, *, by: User | None = None, **given: Any) -> Task:
        request = Request("refund", order, amount_minor=amount, **{"currency": "USD", **given})
        who = by or self.rita
        return tasks.create(who, self.amber, request, request_key=f"k-{uuid4().hex}").task

    def work(self) -> None:
        """Drain what is due now, once, without waiting for timers."""
        self.drain.run(self.timing.drain_budget, lambda: None)
        connection.close_if_unusable_or_obsolete()

    def until(self, true: Callable[[], Any], seconds: float = 20.0) -> Any:
        """Work and look again until it becomes true; fails at the deadline."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.work()
            if found := true():
                return found
            time.sleep(0.02)
        raise AssertionError("this did not become true in time")

    def finish(self, *wanted: Task, seconds: float = 20.0) -> None:
        """Work until these tasks have ended."""

        def all_ended() -> bool:
            for task in wanted:
                task.refresh_from_db()
            return all(task.status in FINAL for task in wanted)

        self.until(all_ended, seconds)

    def approval(self, task: Task) -> Approval:
        """The task's open approval; the task is worked on until there is one."""
        return self.until(lambda: Approval.objects.filter(task=task, state="open").select_related("task").first())  # type: ignore[no-any-return]

    def decide(self, who: User, asked: Approval, verdict: str = "approve", reason: str = "", **seen: Any) -> Outcome:
        """Decide as from a page that shows the approval as it is in `asked`."""
        shown = {"fingerprint": asked.fingerprint, "revision": asked.task.revision, "nonce": uuid4().hex}
        form: dict[str, Any] = shown | seen
        return decisions.decide(who, asked.id, verdict=verdict, reason=reason, **form)

    def clock(self, **ahead: float) -> None:
        """Move the database's clock, for example `clock(hours=1)`."""
        RuntimeClock.objects.filter(id=1).update(advanced=F("advanced") + timedelta(**ahead))

    def events(self, task: Task) -> list[str]:
        return list(Event.objects.filter(task=task).order_by("seq").values_list("type", flat=True))

    def said(self, task: Task, type: str) -> dict[str, Any]:
        """The payload of the task's last event of this type."""
        event = Event.objects.filter(task=task, type=Say(type).type).order_by("-seq").first()
        assert event is not None, f"no {type} in {self.events(task)}"
        payload = EventPayload.objects.filter(task=task, seq=event.seq).first()
        return payload.data if payload else {}

    def operation(self, task: Task) -> Operation:
        return Operation.objects.get(task=task)

    def effects(self, order: str) -> list[dict[str, Any]]:
        """What the provider really did for the order's payment."""
        return self.sandbox.refunds(f"pi_{order}")

    def close(self) -> None:
        self.drain.close()


def use_sandbox(sandbox: SandboxProcess) -> None:
    """Let this process and its children talk to this sandbox."""
    os.environ["SANDBOX_URL"] = sandbox.url
    settings.SANDBOX_URL = settings.ORDERS["base_url"] = sandbox.url
    jobs.ports.cache_clear()
