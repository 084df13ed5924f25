"""The sender's lock: whoever may still send an operation holds a session advisory lock on it.

A lease and its fence protect our rows, not the provider: a worker that was paused behind its intent would send when it
wakes, long after somebody else proved the absence and cancelled. So the lock is taken before the intent is committed
and held until the outcome is recorded, on one direct connection per worker that is used for nothing else; who
reconciles believes an absence only with the lock in hand. A killed worker's socket closes and frees it.
"""

from __future__ import annotations

import threading
from uuid import UUID

import psycopg
from django.db import connection

from runtime_app.points import point

_KEY = "hashtextextended(%s::text, 0)"


class SenderLocks:
    """The locks of one process. Thread-safe; loses all of them together when its connection is lost."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._connection: psycopg.Connection[tuple[object, ...]] | None = None
        self._held: set[UUID] = set()
        self.losses = 0  # how often all locks were lost together; one taken before a loss is nobody's any more

    def take(self, operation_id: UUID) -> bool:
        """Try to take the lock; False when another process holds it, this one already does, or nobody can tell."""
        with self._mutex:
            if operation_id in self._held:  # session locks are re-entrant, so PostgreSQL would say yes
                return False
            try:
                row = self._open().execute(f"SELECT pg_try_advisory_lock({_KEY})", [str(operation_id)]).fetchone()
                if row is not None and row[0] is True:
                    self._held.add(operation_id)
                    return True
            except psycopg.Error:  # the database is away, and with it every lock of this process
                self._forget()
            except BaseException:  # a time limit strikes: nobody knows whether it was taken, so that nobody may keep it
                self._forget()
                raise
            return False

    def still_held(self, operation_id: UUID) -> bool:
        """Ask the connection itself whether the lock is still ours; False when it is gone or does not answer."""
        with self._mutex:
            if operation_id not in self._held or self._connection is None:
                return False
            try:
                self._connection.execute("SELECT 1")
            except psycopg.Error:
                self._forget()
                return False
            return True

    def give_back(self, operation_id: UUID) -> None:
        with self._mutex:
            if operation_id not in self._held:
                return
            self._held.discard(operation_id)
            if self._connection is None:
                return
            try:
                self._connection.execute(f"SELECT pg_advisory_unlock({_KEY})", [str(operation_id)])
            except psycopg.Error:
                self._forget()
            except BaseException:
                self._forget()
                raise

    def close(self) -> None:
        with self._mutex:
            self._forget()

    def _open(self) -> psycopg.Connection[tuple[object, ...]]:
        if self._connection is None or self._connection.closed:
            self._forget()
            params = connection.get_connection_params()
            self._connection = psycopg.connect(
                **{k: v for k, v in params.items() if k in _DIRECT}, autocommit=True,
                application_name="countersign sender locks",
            )
            point("senders.connected")
        return self._connection

    def _forget(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None
        self._held.clear()
        self.losses += 1


_DIRECT = {
    "dbname", "user", "password", "host", "port", "sslmode", "sslrootcert", "options", "connect_timeout",
    "keepalives_idle", "keepalives_interval", "keepalives_count",
}
