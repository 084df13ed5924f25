"""One request on its way through the provider or the order system."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from runtime_app.sandbox.fault_kinds import ORDER_SYSTEM
from runtime_app.sandbox.faults import Armed, Call
from runtime_app.sandbox.http11 import Reply, Request
from runtime_app.sandbox.key_memory import in_use_reply
from runtime_app.sandbox.ledger import Plan
from runtime_app.sandbox.parts import Parts
from runtime_app.sandbox.plan_faults import PLANS
from runtime_app.sandbox.provider import authorized
from runtime_app.sandbox.wire import Invalid, error_reply


@dataclass(slots=True)
class Work:
    sandbox: Parts
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
        if (refused := authorized(self.request)) is not None:
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
                if self.plan.payment_ref in self.sandbox.locked:
                    return in_use_reply("lock_timeout"), False
            reply = instead() if instead else self.execute()
        except Invalid as invalid:
            return invalid.reply, False
        return reply, reply.status != 404

    def execute(self) -> Reply:
        if self.call.verb == "create":
            plan = replace(self.plan or self.sandbox.provider.plan(self.request))
            if (bend := self.met.get("data")) is not None:
                PLANS[bend.fault.code](plan, bend.values)
            return self.sandbox.provider.create(plan)
        reading = _DEEDS.get(self.call.verb)
        if reading is None:
            return error_reply(404, "invalid_request_error", f"Unrecognized request URL ({self.request.method}: "
                               f"{self.request.path}).")
        try:
            return reading(self)
        except Invalid as invalid:
            return invalid.reply

    @property
    def live(self) -> bool:
        """Whether the answer says that it is of the live mode: only F49 lets it."""
        return self._mixed("livemode")

    @property
    def tenants(self) -> tuple[str, ...] | None:
        """Whose things a list shows; None for everybody's."""
        return None if self._mixed("account") else self.sandbox.accounts.tenants(self.request)

    def _mixed(self, what: str) -> bool:
        return (mixed := self.met.get("mode")) is not None and mixed.values["what"] == what

    def hold_key(self) -> None:
        self.sandbox.keys.running.add(self.key)

    def let_key_go(self) -> None:
        self.sandbox.keys.running.discard(self.key)

    def lock_payment(self) -> None:
        ref = self.call.facts.get("payment_ref", "")
        self.sandbox.locked[ref] = self.sandbox.locked.get(ref, 0) + 1

    def unlock_payment(self) -> None:
        ref = self.call.facts.get("payment_ref", "")
        self.sandbox.locked[ref] -= 1
        if not self.sandbox.locked[ref]:
            del self.sandbox.locked[ref]

    def queue(self, seconds: float, holds_key: bool) -> None:
        self.sandbox.queued.add(self.request, self.sandbox.clock.now() + seconds, holds_key)


def _listed(work: Work) -> Reply:
    bends: dict[str, Any] = {}
    if (armed := work.met.get("data")) is not None:
        bends = {"lag": armed.values["seconds"]} if armed.fault.code == "F25" else {"lie": armed.values["lie"]}
    return work.sandbox.provider.listed(work.request, work.tenants, **bends)


_DEEDS: dict[str, Callable[[Work], Reply]] = {
    "cancel": lambda work: work.sandbox.provider.cancel(work.request),
    "retrieve": lambda work: work.sandbox.provider.retrieve(work.request),
    "payment": lambda work: work.sandbox.provider.payment(work.request, live=work.live),
    "list": _listed,
    "statement": lambda work: work.sandbox.balance.listed(work.request, work.tenants, work.call.facts),
    "events": lambda work: work.sandbox.events.listed(work.request, work.tenants, live=work.live),
    "order": lambda work: work.sandbox.orders.read(work.request),
    "write_back": lambda work: work.sandbox.orders.record(work.request),
}
