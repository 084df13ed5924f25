"""A request in, a delivery out: the provider, the order system, the faults between them, and the log of it all."""

from __future__ import annotations

import json
import secrets
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace

from runtime_app.sandbox import orders as order_system
from runtime_app.sandbox import provider as payment_provider
from runtime_app.sandbox.answer_faults import ANSWERS
from runtime_app.sandbox.clock import Clock
from runtime_app.sandbox.deliveries import Delivery
from runtime_app.sandbox.fault_table import ORDER_SYSTEM
from runtime_app.sandbox.faults import Armed, Call, FaultBoard
from runtime_app.sandbox.http11 import Reply, Request
from runtime_app.sandbox.key_memory import KeyMemory
from runtime_app.sandbox.ledger import Ledger, Plan
from runtime_app.sandbox.plan_faults import PLANS
from runtime_app.sandbox.store import Store
from runtime_app.sandbox.wire import error_reply


class Sandbox:
    """Everything but the sockets. All methods are called on one thread."""

    def __init__(self, path: str) -> None:
        self.store = Store(path)
        row = self.store.one("SELECT advanced FROM clock")
        if row is None:
            self.store.run("INSERT INTO clock VALUES (0)")
        self.clock = Clock(float(row["advanced"]) if row else 0.0)
        self.ledger = Ledger(self.store, self.clock)
        self.keys = KeyMemory(self.store, self.clock)
        self.provider = payment_provider.Provider(self.ledger)
        self.orders = order_system.Orders(self.store, self.clock)
        self.faults = FaultBoard(self.clock)

    def advance(self, seconds: float) -> None:
        self.clock.advanced += seconds
        self.store.run("UPDATE clock SET advanced = ?", self.clock.advanced)
        self.catch_up()

    def catch_up(self) -> None:
        """Do what the clock has made due: queued requests first, then changes of status."""
        due = "SELECT * FROM queue WHERE due_at <= ? ORDER BY due_at, id LIMIT 1"
        while row := self.store.one(due, self.clock.now()):
            with self.store.together():
                self.store.run("DELETE FROM queue WHERE id = ?", row["id"])
                request = Request(row["method"], row["target"], json.loads(row["headers"]), row["body"])
                Work(self, request, Call("create"), {}).run()
        self.ledger.settle_due()

    def handle(self, request: Request) -> tuple[Delivery, Callable[[str], None]]:
        """What happens on the wire, and a function that corrects the log when it turns out otherwise."""
        call, met = Call("other"), dict[str, Armed]()
        try:
            self.catch_up()
            call = payment_provider.read_call(request, self.ledger) or order_system.read_call(request)
            met = self.faults.meet(call)
            work = Work(self, request, call, met)
            answer = met.get("answer")
            delivery = ANSWERS[answer.fault.code](work, answer.values) if answer else Delivery(reply=work.run())
        except UnicodeError:
            delivery = Delivery(reply=order_system.problem(400, "This text is not Unicode."))
        except Exception:  # a sandbox that dies would look like a fault that nobody asked for
            traceback.print_exc(file=sys.stderr)
            delivery = Delivery(reply=order_system.problem(500, "The sandbox has a defect."))
        if delivery.reply is not None and call.verb not in ORDER_SYSTEM:
            delivery.reply.headers.setdefault("request-id", "req_" + secrets.token_hex(8))
        return self._logged(request, call, delivery, met)

    def _logged(
        self, request: Request, call: Call, delivery: Delivery, met: dict[str, Armed]
    ) -> tuple[Delivery, Callable[[str], None]]:
        row = self._log(request, call, delivery.answered, ",".join(a.fault.code for a in met.values()) or None)
        return delivery, lambda answered: self._correct(row, answered)

    def _log(self, request: Request, call: Call, answered: str, fault: str | None) -> int:
        facts = call.facts
        return self.store.run(
            "INSERT INTO requests (at, method, path, idempotency_key, operation_id, payment_ref, order_ref, answered,"
            " fault, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            self.clock.now(), request.method, request.target, request.headers.get("idempotency-key"),
            facts.get("operation_id"), facts.get("payment_ref"), facts.get("order_ref"), answered, fault, request.body,
        ).lastrowid or 0

    def _correct(self, row: int, answered: str) -> None:
        self.store.run("UPDATE requests SET answered = ? WHERE id = ?", answered, row)


@dataclass(slots=True)
class Work:
    """One request on its way through the provider or the order system."""

    sandbox: Sandbox
    request: Request
    call: Call
    met: dict[str, Armed]
    plan: Plan | None = None

    @property
    def key(self) -> str:
        return self.request.headers.get("idempotency-key", "")

    def run(self, instead: Callable[[], Reply] | None = None) -> Reply:
        """Through sign-in, validation and key memory; `instead` replaces the deed itself."""
        if self.call.verb in ORDER_SYSTEM:
            return instead() if instead else self.execute()
        if (refused := payment_provider.authorized(self.request)) is not None:
            return refused
        if self.call.verb not in ("create", "cancel"):
            return instead() if instead else self.execute()
        memory, forgets = self.sandbox.keys, self.met.get("key")
        mode = forgets.values.get("mode", "forgets") if forgets is not None else "remembers"
        if mode == "ignored":
            return self._deed(instead)[0]
        if mode == "forgets":
            memory.forget(self.key)
        return memory.through(self.request, lambda: self._deed(instead), remember_errors=mode != "success_only")

    def _deed(self, instead: Callable[[], Reply] | None) -> tuple[Reply, bool]:
        try:
            if self.call.verb == "create":
                self.plan = self.sandbox.provider.plan(self.request)
            reply = instead() if instead else self.execute()
        except payment_provider.Invalid as invalid:
            return invalid.reply, False
        return reply, reply.status != 404

    def execute(self) -> Reply:
        provider, orders = self.sandbox.provider, self.sandbox.orders
        match self.call.verb:
            case "create":
                plan = replace(self.plan or provider.plan(self.request))
                if (bend := self.met.get("data")) is not None:
                    PLANS[bend.fault.code](plan, bend.values)
                return provider.create(plan)
            case "cancel":
                return provider.cancel(self.request)
            case "retrieve":
                return provider.retrieve(self.request)
            case "list":
                return provider.listed(self.request, **payment_provider.listing_bends(self.met))
            case "payment":
                return provider.payment(self.request)
            case "order":
                return orders.read(self.request)
            case "write_back":
                return orders.record(self.request)
        return error_reply(404, "invalid_request_error", f"Unrecognized request URL ({self.request.method}: "
                           f"{self.request.path}).")

    def hold_key(self) -> None:
        self.sandbox.keys.running.add(self.key)

    def let_key_go(self) -> None:
        self.sandbox.keys.running.discard(self.key)

    def queue(self, seconds: float, holds_key: bool) -> None:
        kept = {n: v for n, v in self.request.headers.items() if n in ("idempotency-key", "authorization")}
        self.sandbox.store.run(
            "INSERT INTO queue (due_at, method, target, headers, body, holds_key) VALUES (?, ?, ?, ?, ?, ?)",
            self.sandbox.clock.now() + seconds, self.request.method, self.request.target, json.dumps(kept),
            self.request.body, holds_key,
        )
