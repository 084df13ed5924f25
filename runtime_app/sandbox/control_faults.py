"""Arming faults, those that act at once among them, and telling which there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from runtime_app.sandbox.app import Sandbox
from runtime_app.sandbox.fault_kinds import MATCHES, VERBS
from runtime_app.sandbox.fault_table import FAULTS
from runtime_app.sandbox.faults import Armed, Unusable
from runtime_app.sandbox.ledger import Plan


class Port(Protocol):
    """The provider's listening port, which a fault can close."""

    def refuse(self, seconds: float | None) -> None: ...

    def accept(self) -> None: ...


def arm(sandbox: Sandbox, port: Port, asked: Mapping[str, Any]) -> Armed:
    """Arm a fault, or let it happen now. Raises Unusable, or Refused when the ledger says no."""
    armed = sandbox.faults.arm(asked)
    if armed.fault.layer == "port":
        port.refuse(armed.values["seconds"])
    elif armed.fault.layer == "now":
        payment_ref, amount = armed.match.get("payment_ref"), armed.values["amount_minor"]
        if payment_ref is None:
            raise Unusable(f"{armed.fault.code} needs match.payment_ref: the payment that it happens to.")
        if armed.fault.code == "F33":
            sandbox.ledger.create(Plan(payment_ref, amount, {}))
        else:
            sandbox.ledger.dispute(payment_ref, amount)
    return armed


def disarm(sandbox: Sandbox, port: Port, number: int | None = None) -> int:
    """Clear one fault, or all of them with the port opened again; says how many there were."""
    if number is None:
        port.accept()
    return sandbox.faults.clear(number)


def overview(sandbox: Sandbox, addresses: list[str]) -> dict[str, Any]:
    return {
        "now": sandbox.clock.iso(),
        "addresses": addresses,
        "match": list(MATCHES),
        "on": {word: list(verbs) for word, verbs in VERBS.items()},
        "faults": [
            {"fault": f.code, "help": f.help, "on": list(f.on), "times": f.times,
             "parameters": {n: {"default": p.default, "help": p.help, "choices": list(p.choices) or None}
                            for n, p in f.params.items()}}
            for f in FAULTS.values()
        ],
        "armed": [a.told() for a in sandbox.faults.armed()],
    }
