"""The sandbox's file: one SQLite database that survives kill -9 of the process."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from runtime_app.sandbox.schema import bring_up


class Store:
    """One connection, used by one thread. Rows come back as sqlite3.Row."""

    def __init__(self, path: str) -> None:
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.row_factory = sqlite3.Row
        self.db.execute("PRAGMA journal_mode = WAL")
        # A killed process loses nothing that was written; only a crash of the whole machine could, and this is a trial.
        self.db.execute("PRAGMA synchronous = OFF")
        bring_up(self.db)
        self._depth = 0

    def all(self, sql: str, *values: object) -> list[sqlite3.Row]:
        return self.db.execute(sql, values).fetchall()

    def one(self, sql: str, *values: object) -> sqlite3.Row | None:
        row: sqlite3.Row | None = self.db.execute(sql, values).fetchone()
        return row

    def run(self, sql: str, *values: object) -> sqlite3.Cursor:
        return self.db.execute(sql, values)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Everything inside is written, or nothing; may be nested."""
        if self._depth:
            yield
            return
        self._depth += 1
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.db.execute("COMMIT")
        except BaseException:
            self.db.execute("ROLLBACK")
            raise
        finally:
            self._depth -= 1

    def close(self) -> None:
        self.db.close()
