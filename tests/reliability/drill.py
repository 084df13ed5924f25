"""The plan of a randomised drill: from one seed the same payments, people's wishes, faults and accidents every time."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.reliability.fault_table import ROWS, Arm, Row

TENANTS = {"north": True, "south": True, "east": False, "west": False}  # the first two are told
CURRENCIES = ("USD", "EUR", "JPY", "KWD", "ISK", "MGA")
CAPTURED = 60_000
THRESHOLD = 5000
# A provider that forgets keys and one that carries a request out hours later are each a promise less. Both at once
# leave nothing that a resend could rest on, so no payment meets both.
_FORGETS, _LATE = {"F16", "F17"}, {"F20", "F3", "F5", "F35"}
_NOT_OURS = {"F32"}  # the provider refunds twice by its own fault
_RARE = {"F18", "F24", "F29", "F30", "F33", "F34", "F49"}  # they stop a payment or an order until a person has acted


@dataclass(frozen=True, slots=True)
class Payment:
    tenant: str
    order: str
    currency: str
    forgets: bool

    @property
    def ref(self) -> str:
        return f"pi_{self.order}"

    @property
    def other(self) -> str:
        """A payment of nobody's, of the same currency, that a fault may reach instead."""
        return f"pi_{self.tenant}-{self.currency}-other"

    def own(self, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return value.format(payment=self.ref, other=self.other, tenant=self.tenant)


@dataclass
class Round:
    """What happens together: people's acts in their order, faults before them, and accidents beside them."""

    acts: list[dict[str, Any]] = field(default_factory=list)
    faults: list[tuple[Payment, Arm]] = field(default_factory=list)
    notices: list[dict[str, Any]] = field(default_factory=list)
    kills: int = 0
    empties_redis: bool = False
    away: float = 0.0  # sandbox seconds without the provider
    port_closed: float = 0.0  # real seconds without its port, and the order system's
    jump: float = 0.0


class Plan:
    """`history` tells of each payment what it met, to read when something is wrong with it."""

    def __init__(self, seed: int, payments: int, rounds: int, asks: int) -> None:
        self.dice = random.Random(seed)
        self.history: dict[str, list[str]] = defaultdict(list)
        self.twice: set[str] = set()  # payments that the provider itself may refund twice
        self.payments = [self._payment(n) for n in range(payments)]
        self.keys: list[tuple[str, Payment]] = []
        self.asks = asks
        self.rounds = [self._round(n) for n in range(rounds)]

    def _payment(self, n: int) -> Payment:
        tenant = self.dice.choice(list(TENANTS))
        return Payment(tenant, f"{tenant}-{n}", self.dice.choice(CURRENCIES), self.dice.random() < 0.3)

    def _round(self, number: int) -> Round:
        dice, made = self.dice, Round()
        for n in range(self.asks):
            payment = dice.choice(self.payments)
            if dice.random() < 0.5 and (row := self._row(payment)) is not None:
                made.faults += [(payment, arm) for arm in row.arms]
                self._note(payment, f"{row.fault} {row.what}")
                self.twice |= {payment.ref} if row.fault in _NOT_OURS else set()
            self._ask(made, payment, f"k-{number}-{n}")
        for key, payment in dice.sample(self.keys, min(len(self.keys), self.asks // 4)):
            self._change_of_mind(made, key, payment)
        for tenant in TENANTS:
            verdict = "reject" if dice.random() < 0.15 else "approve"
            made.acts.append({"act": "decide", "tenant": tenant, "by": dice.choice(("ada", "abel")),
                              "verdict": verdict, "most": 1 if verdict == "reject" else 30})
        made.notices = list(self._lies())
        made.kills, made.empties_redis = dice.choice((0, 0, 1, 2)), dice.random() < 0.25
        made.away = dice.choice((60.0, 600.0)) if dice.random() < 0.1 else 0.0
        made.port_closed = 1.0 if dice.random() < 0.1 else 0.0
        made.jump = dice.choice((1.0, 5.0, 20.0, 20.0, 45.0, 300.0, 3600.0))
        return made

    def _row(self, payment: Payment) -> Row | None:
        row = self.dice.choice(ROWS)
        unfit = _LATE if payment.forgets else _FORGETS
        rare = row.fault in _RARE and self.dice.random() < 0.8
        return None if row.port or rare or row.fault in unfit else row

    def _ask(self, made: Round, payment: Payment, key: str) -> None:
        amount = 100 * (self.dice.randint(51, 80) if self.dice.random() < 0.15 else self.dice.randint(1, 40))
        made.acts.append({"act": "ask", "tenant": payment.tenant, "order": payment.order, "payment": payment.ref,
                          "currency": payment.currency, "amount": amount, "key": key})
        self.keys.append((key, payment))
        self._note(payment, f"{key} asks for {amount}")

    def _change_of_mind(self, made: Round, key: str, payment: Payment) -> None:
        if self.dice.random() < 0.6:
            made.acts.append({"act": "cancel", "key": key})
            self._note(payment, f"{key} is cancelled")
        else:
            amount = 100 * self.dice.randint(1, 70)
            made.acts.append({"act": "amend", "key": key, "amount": amount})
            self._note(payment, f"{key} is amended to {amount}")

    def _lies(self) -> Iterator[dict[str, Any]]:
        """Notices that nobody sent, rightly signed or not: of what was not done, of what nobody knows, years old."""
        told = [p for p in self.payments if TENANTS[p.tenant]]
        for _ in range(self.dice.randint(0, 3)):
            payment = self.dice.choice(told)
            how = self.dice.choice(("good", "good", "bad_signature", "old_timestamp", "other_secret"))
            status = self.dice.choice(("succeeded", "failed", "canceled", "pending"))
            self._note(payment, f"a {how} notice says {status}")
            yield {"payment_ref": payment.ref, "tenant": payment.tenant, "status": status, "how": how}

    def _note(self, payment: Payment, what: str) -> None:
        self.history[payment.ref].append(what)
