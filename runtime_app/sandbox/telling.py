"""From what happened to the notices of it, bent by the faults F36 to F41 and F49."""

from __future__ import annotations

import secrets
import sqlite3
import uuid
from dataclasses import replace
from typing import Any

from runtime_app.sandbox.events import event_json
from runtime_app.sandbox.faults import Armed, Call
from runtime_app.sandbox.ledger import charge_id
from runtime_app.sandbox.notices import Letter, Notices
from runtime_app.sandbox.parts import Parts
from runtime_app.sandbox.signing import Signing


class Telling:
    """Writes the notices of every entry of the journal that is newer than those it has seen."""

    def __init__(self, parts: Parts, notices: Notices) -> None:
        self._parts = parts
        self._notices = notices
        self._seen = parts.ledger.journal.last

    def tell(self) -> list[int] | None:
        """Write the notices of what is new; None when there are none, else those that arrive before the request is
        answered (F39).
        """
        journal = self._parts.ledger.journal
        if journal.last == self._seen:
            return None
        if not self._parts.accounts.listening:
            self._seen = journal.last
            return None
        letters = []
        for entry in journal.after(self._seen):
            letters += self._letters(entry)
            self._seen = int(entry["seq"])
        kept = [(self._notices.keep(letter), letter) for letter in letters]
        return [number for number, letter in kept if letter.fault == "F39"] if kept else None

    def _letters(self, entry: sqlite3.Row) -> list[Letter]:
        payment = self._parts.ledger.payment(str(entry["payment_ref"]))
        account = self._parts.accounts.of(str(payment["tenant"])) if payment is not None else None
        if payment is None or account is None or not account.notice_url:
            return []
        refund = self._parts.ledger.refund(str(entry["source"]))
        facts = {"payment_ref": payment["payment_ref"], "order_ref": payment["order_ref"], "tenant": payment["tenant"]}
        if refund is not None:
            facts |= {n: refund[n] for n in ("operation_id", "idempotency_key") if refund[n] is not None}
        met = self._parts.faults.meet(Call("notice", facts))
        live = (mode := met.get("mode")) is not None and mode.values["what"] == "livemode"
        letters = [
            Letter(account.tenant, event, str(entry["source"]), facts["payment_ref"], facts.get("operation_id"),
                   int(entry["seq"]))
            for event in self._parts.events.of(entry, live=live)
        ]
        return _bent(letters, met["notice"]) if "notice" in met else letters


def _bent(letters: list[Letter], armed: Armed) -> list[Letter]:
    values, code = armed.values, armed.fault.code
    letters = [replace(letter, fault=code) for letter in letters]
    match code:
        case "F36":
            return [replace(letter, state="lost", due_in=None) for letter in letters]
        case "F37":
            return [letter for letter in letters for _ in range(values["copies"])]
        case "F38":
            return [replace(letter, state="held", due_in=values["seconds"]) for letter in letters]
        case "F39":
            return [replace(letter, due_in=None) for letter in letters]
        case "F40":
            age = values["age"] if values["how"] == "old_timestamp" else 0
            return [replace(letter, signing=Signing(values["how"], age)) for letter in letters]
        case "F41":
            return [*letters, _of_nobody(letters[0], values["operation_id"])]
    return letters


def _of_nobody(beside: Letter, operation_id: str | None) -> Letter:
    operation_id = operation_id or str(uuid.uuid4())
    refund = invented_refund(beside.payment_ref or "", operation_id, beside.event["created"])
    event = event_json("evt_" + secrets.token_hex(14), "refund.updated", beside.event["created"], refund)
    return replace(beside, event=event, source=refund["id"], operation_id=operation_id)


def invented_refund(
    payment_ref: str, operation_id: str | None, created: int, *, refund_id: str | None = None, amount: int = 100,
    currency: str = "usd", status: str = "succeeded",
) -> dict[str, Any]:
    """The shape of a refund that is not in the ledger; `amount` as on the wire."""
    refund_id = refund_id or "re_" + secrets.token_hex(12)
    return {
        "id": refund_id, "object": "refund", "amount": amount, "balance_transaction": "txn_" + refund_id[3:],
        "charge": charge_id(payment_ref), "created": created, "currency": currency,
        "metadata": {"operation_id": operation_id} if operation_id else {}, "payment_intent": payment_ref,
        "reason": None, "receipt_number": None, "source_transfer_reversal": None, "status": status,
        "transfer_reversal": None,
    }
