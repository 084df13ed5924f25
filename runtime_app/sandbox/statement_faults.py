"""The faults of a statement, F42 to F48: what is wrong with one reading of it, from its first page to its last."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from runtime_app.sandbox.clock import Clock
from runtime_app.sandbox.faults import Armed, FaultBoard
from runtime_app.sandbox.http11 import Reply
from runtime_app.sandbox.ledger import Ledger
from runtime_app.sandbox.wire import error_reply

Line = dict[str, Any]  # a row of the journal with txn, operation_id, idempotency_key, tenant and order_ref beside it
Reading = tuple[str, tuple[tuple[str, str], ...]]
_DAY = 86400
_BOOT = secrets.token_hex(8)
READINGS_MOST = 200


@dataclass(slots=True)
class Bend:
    """What is wrong with one reading of a statement."""

    hidden: set[str] = field(default_factory=set)
    doubled: set[str] = field(default_factory=set)
    extra: list[Line] = field(default_factory=list)
    total_off: int = 0
    empty: bool = False
    unavailable: Reply | None = None

    def applied(self, lines: list[Line]) -> list[Line]:
        """All lines of the reading as they are shown, newest first."""
        if self.empty:
            return []
        shown = [line for line in lines if line["txn"] not in self.hidden]
        for line in self.extra:
            place = next((n for n, other in enumerate(shown) if other["dated"] <= line["dated"]), len(shown))
            shown.insert(place, line)
        return [line for line in shown for _ in range(1 + (line["txn"] in self.doubled))]


class StatementFaults:
    """Which fault meets which reading. A reading begins with its first page; the others follow it."""

    def __init__(self, board: FaultBoard, ledger: Ledger, clock: Clock) -> None:
        self._board = board
        self._ledger = ledger
        self._clock = clock
        self._readings: dict[Reading, Bend] = {}

    def of_reading(self, reading: Reading) -> Bend | None:
        return self._readings.get(reading)

    def begin(
        self, reading: Reading, facts: Mapping[str, str], counted: bool, read: Callable[[], list[Line]]
    ) -> Bend | None:
        """Meet the faults that wait for a statement; `counted`: its total was asked for. None when nothing is wrong."""
        self._readings.pop(reading, None)
        if not any(armed.fault.layer in ("line", "day") for armed in self._board.armed()):
            return None
        bend = Bend()
        lines = self._lines_met(read())
        days = self._board.take("day", lambda a: a.fits(facts) and (counted or a.fault.code != "F46"))
        if not lines and not days:
            return None
        for armed, line in lines:
            self._bend_line(bend, armed, line)
        for armed in days:
            self._bend_day(bend, armed, dict(reading[1]))
        while len(self._readings) >= READINGS_MOST:
            del self._readings[next(iter(self._readings))]
        self._readings[reading] = bend
        return bend

    def _lines_met(self, lines: list[Line]) -> list[tuple[Armed, Line]]:
        """Each fault of a line with the line that it meets: the newest that it fits."""
        met: dict[int, Line] = {}

        def meets(armed: Armed) -> bool:
            line = next((line for line in lines if armed.fits(line)), None)
            if line is not None:
                met[armed.id] = line
            return line is not None

        return [(armed, met[armed.id]) for armed in self._board.take("line", meets)]

    def _bend_line(self, bend: Bend, armed: Armed, line: Line) -> None:
        midnight = line["dated"] // _DAY * _DAY
        match armed.fault.code:
            case "F42":
                bend.hidden.add(line["txn"])
            case "F44":
                bend.doubled.add(line["txn"])
            case "F45":
                self._ledger.journal.date(line["seq"], line["dated"] + armed.values["days"] * _DAY)
            case "F48":
                shift = armed.values["seconds"]
                self._ledger.journal.date(line["seq"], midnight + shift + (_DAY if shift >= 0 else 0))

    def _bend_day(self, bend: Bend, armed: Armed, query: dict[str, str]) -> None:
        match armed.fault.code:
            case "F43":
                bend.extra.append(self._ghost(armed, query))
            case "F46":
                bend.total_off += armed.values["by"]
            case "F47" if armed.values["how"] == "empty":
                bend.empty = True
            case "F47":
                bend.unavailable = error_reply(armed.values["status"], "invalid_request_error",
                                               "The balance transactions of this time are not available.",
                                               code="balance_transactions_unavailable")

    def _ghost(self, armed: Armed, query: dict[str, str]) -> Line:
        """A refund that nobody made, dated inside the time that is read; the same one whenever this day is read."""
        dated, until, since = self._clock.now(), query.get("created[lt]"), query.get("created[gte]")
        if until is not None:
            dated = min(dated, int(until) - 1)
        if since is not None:
            dated = max(dated, int(since))
        ident = hashlib.sha256(f"{_BOOT} {armed.id} {since} {until}".encode()).hexdigest()[:24]
        payment_ref, amount = armed.values["payment_ref"] or f"pi_ghost{ident[:8]}", armed.values["amount_minor"]
        payment = self._ledger.payment(payment_ref)
        currency = str(payment["currency"]) if payment else "USD"
        ghost = {"id": f"re_{ident}", "payment_ref": payment_ref, "amount_minor": amount, "currency": currency,
                 "status": "succeeded", "metadata": json.dumps({}), "reason": None, "failure_reason": None,
                 "pending_reason": None, "created": dated, "txn": f"txn_{ident}", "failure_txn": None}
        return {"txn": f"txn_{ident}", "kind": "refund", "amount_minor": -amount, "currency": currency, "dated": dated,
                "source": f"re_{ident}", "ghost": ghost}
