"""Notices that are to be delivered: each is kept with its attempts, and sent again while its receiver does not take it.

States: waiting → delivered or given_up; held waits for another notice of its refund (F38); lost is never sent (F36).
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from runtime_app.sandbox.accounts import Accounts
from runtime_app.sandbox.clock import Clock
from runtime_app.sandbox.courier import Answered, Courier, Post
from runtime_app.sandbox.signing import Signing, headers
from runtime_app.sandbox.store import Store
from runtime_app.sandbox.wire import dumped

WAITS = (1.0, 4.0, 15.0, 60.0)  # seconds of the sandbox's clock between attempts


@dataclass(slots=True)
class Letter:
    """One notice for one tenant; `entry` is the journal's entry that it tells of, None when it was sent by hand."""

    tenant: str
    event: dict[str, Any]
    source: str | None = None
    payment_ref: str | None = None
    operation_id: str | None = None
    entry: int | None = None
    signing: Signing = field(default_factory=Signing)
    state: str = "waiting"
    due_in: float | None = 0.0  # seconds of the sandbox's clock; None: not before it is sent by hand or let go
    fault: str | None = None


class Notices:
    """Used on the loop's thread; only the courier's threads wait for receivers."""

    def __init__(self, store: Store, clock: Clock, accounts: Accounts, loop: asyncio.AbstractEventLoop) -> None:
        self._store = store
        self._clock = clock
        self._accounts = accounts
        self._loop = loop
        self._courier = Courier(loop)
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        # What was on its way when the process ended is sent again: at least once, as Stripe does.
        store.run("UPDATE notices SET due_at = ? WHERE state = 'waiting' AND due_at IS NULL", clock.now())

    def keep(self, letter: Letter) -> int:
        """Write it down; it goes out with the next `pump`, or at once by `send`."""
        due = None if letter.due_in is None else self._clock.now() + letter.due_in
        event = letter.event
        return self._store.run(
            "INSERT INTO notices (event_id, type, tenant, source, payment_ref, operation_id, created, body, entry,"
            " signing, state, due_at, answers, fault) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '[]', ?)",
            event["id"], event["type"], letter.tenant, letter.source, letter.payment_ref, letter.operation_id,
            event["created"], dumped(event), letter.entry, letter.signing.dumped(), letter.state, due, letter.fault,
        ).lastrowid or 0

    def pump(self) -> None:
        """Send what is due, and come again when the next is."""
        due = self._store.all("SELECT * FROM notices WHERE due_at <= ? ORDER BY due_at, id", self._clock.now())
        for row in due:
            self._post(row, lambda: None, urgent=False)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        following = self._store.one("SELECT min(due_at) AS at FROM notices WHERE due_at IS NOT NULL")
        if following is not None and following["at"] is not None:
            wait = max(0.0, following["at"] - self._clock.now())
            self._timer = self._loop.call_later(min(wait, 3600.0), self.pump)

    def send(self, ids: list[int], done: Callable[[], None]) -> None:
        """Try these now, each once, beside the others; `done` is called when every one was tried."""
        rows = [row for number in ids if (row := self.row(number)) is not None and row["state"] == "waiting"]
        left = len(rows)
        if not rows:
            self._loop.call_soon(done)

        def tried() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                done()

        for row in rows:
            self._post(row, tried, urgent=True)

    def close(self) -> None:
        """Write nothing more; what is still on its way is sent again at the next start."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    def row(self, number: int) -> sqlite3.Row | None:
        return self._store.one("SELECT * FROM notices WHERE id = ?", number)

    def _post(self, row: sqlite3.Row, tried: Callable[[], None], *, urgent: bool) -> None:
        account = self._accounts.of(row["tenant"])
        if account is None or not account.notice_url or not account.notice_secret:
            self._write(row["id"], "given_up", None, "the account has no notice_url any more")
            self._loop.call_soon(tried)
            return
        self._store.run("UPDATE notices SET state = 'waiting', due_at = NULL WHERE id = ?", row["id"])
        sent = headers(Signing(**json.loads(row["signing"])), account.notice_secret, self._clock.now(), row["body"])

        def done(answered: Answered) -> None:
            self._answered(row["id"], answered)
            tried()

        self._courier.send(Post(account.notice_url, row["body"], sent, done), urgent=urgent)

    def _answered(self, number: int, answered: Answered) -> None:
        if self._closed:
            return
        row = self.row(number)
        assert row is not None
        attempts = len(json.loads(row["answers"]))
        if isinstance(answered, int) and 200 <= answered < 300:
            self._write(number, "delivered", None, answered)
        elif attempts < len(WAITS):
            self._write(number, "waiting", self._clock.now() + WAITS[attempts], answered)
        else:
            self._write(number, "given_up", None, answered)
        self._let_go(row)
        self.pump()

    def _write(self, number: int, state: str, due: float | None, answered: Answered) -> None:
        told = json.dumps({"at": self._clock.iso(), "answered": answered})
        self._store.run("UPDATE notices SET state = ?, due_at = ?, answers = json_insert(answers, '$[#]', json(?))"
                        " WHERE id = ?", state, due, told, number)

    def _let_go(self, tried: sqlite3.Row) -> None:
        """What was held back until another notice of this refund had gone may go now."""
        self._store.run(
            "UPDATE notices SET state = 'waiting', due_at = ? WHERE state = 'held' AND source = ? AND id != ?"
            " AND entry IS NOT ?", self._clock.now(), tried["source"], tried["id"], tried["entry"],
        )
