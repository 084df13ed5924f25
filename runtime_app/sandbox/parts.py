"""The sandbox's parts, put together once."""

from __future__ import annotations

from runtime_app.sandbox.accounts import Accounts
from runtime_app.sandbox.balance import Balance
from runtime_app.sandbox.clock import Clock
from runtime_app.sandbox.events import Events
from runtime_app.sandbox.faults import FaultBoard
from runtime_app.sandbox.key_memory import KeyMemory
from runtime_app.sandbox.ledger import Ledger
from runtime_app.sandbox.orders import Orders
from runtime_app.sandbox.provider import Provider
from runtime_app.sandbox.queued import Queued
from runtime_app.sandbox.statement_faults import StatementFaults
from runtime_app.sandbox.store import Store


class Parts:
    """Everything that a request can touch. All of it is used on one thread."""

    def __init__(self, path: str) -> None:
        self.store = Store(path)
        row = self.store.one("SELECT advanced FROM clock")
        if row is None:
            self.store.run("INSERT INTO clock VALUES (0)")
        self.clock = Clock(float(row["advanced"]) if row else 0.0)
        self.accounts = Accounts(self.store)
        self.ledger = Ledger(self.store, self.clock)
        self.queued = Queued(self.store)
        self.keys = KeyMemory(self.store, self.clock, self.queued)
        self.provider = Provider(self.ledger)
        self.events = Events(self.ledger, self.provider)
        self.orders = Orders(self.store, self.clock)
        self.faults = FaultBoard(self.clock)
        self.balance = Balance(self.ledger, StatementFaults(self.faults, self.ledger, self.clock))
        # Payments on which a create runs that lets no other beside it (F35), and how many.
        self.locked: dict[str, int] = {}
