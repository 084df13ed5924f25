"""A request in, a delivery out: the provider, the order system, the faults between them, and the log of it all."""

from __future__ import annotations

import asyncio
import secrets
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace

from runtime_app.sandbox import orders as order_system
from runtime_app.sandbox import provider as payment_provider
from runtime_app.sandbox.answer_faults import ANSWERS
from runtime_app.sandbox.deliveries import Delivery
from runtime_app.sandbox.fault_kinds import ORDER_SYSTEM
from runtime_app.sandbox.faults import Armed, Call
from runtime_app.sandbox.http11 import Request
from runtime_app.sandbox.notices import Notices
from runtime_app.sandbox.parts import Parts
from runtime_app.sandbox.telling import Telling
from runtime_app.sandbox.work import Work


class Sandbox(Parts):
    """Everything but the sockets. All methods are called on one thread, that of `loop`."""

    def __init__(self, path: str, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(path)
        self.notices = Notices(self.store, self.clock, self.accounts, loop)
        self._telling = Telling(self, self.notices)
        loop.call_soon(self.notices.pump)

    def close(self) -> None:
        self.notices.close()
        self.store.close()

    def advance(self, seconds: float) -> None:
        self.clock.advanced += seconds
        self.store.run("UPDATE clock SET advanced = ?", self.clock.advanced)
        self.catch_up()
        self.notices.pump()

    def catch_up(self) -> None:
        """Do what the clock has made due: queued requests first, then changes of status."""
        while self.queued.is_due(self.clock.now()):
            with self.store.together():
                Work(self, self.queued.take(), Call("create"), {}).run()
        self.ledger.settle_due()

    def handle(self, request: Request) -> tuple[Delivery, Callable[[str], None]]:
        """What happens on the wire, and a function that corrects the log when it turns out otherwise."""
        call, met = Call("other"), dict[str, Armed]()
        try:
            self.catch_up()
            call = payment_provider.read_call(request, self.ledger, self.accounts) or order_system.read_call(request)
            met = self.faults.meet(call)
            work = Work(self, request, call, met)
            answer = met.get("answer")
            delivery = ANSWERS[answer.fault.code](work, answer.values) if answer else Delivery(reply=work.run())
            delivery = self.tell(delivery)
        except UnicodeError:
            delivery = Delivery(reply=order_system.problem(400, "This text is not Unicode."))
        except Exception:  # a sandbox that dies would look like a fault that nobody asked for
            traceback.print_exc(file=sys.stderr)
            delivery = Delivery(reply=order_system.problem(500, "The sandbox has a defect."))
        if delivery.reply is not None and call.verb not in ORDER_SYSTEM:
            delivery.reply.headers.setdefault("request-id", "req_" + secrets.token_hex(8))
        row = self._log(request, call, delivery.answered, ",".join(a.fault.code for a in met.values()) or None)
        return delivery, lambda answered: self._correct(row, answered)

    def tell(self, delivery: Delivery) -> Delivery:
        """Send the notices of what has happened by now, those of F39 before the delivery goes on."""
        if (later := delivery.later) is not None:
            delivery = replace(delivery, later=lambda: self.tell(later()))
        told = self._telling.tell()
        if told is None:
            return delivery
        self.notices.pump()
        if not told:
            return delivery
        then = delivery.first
        return replace(delivery, first=lambda done: self.notices.send(told, (lambda: then(done)) if then else done))

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
