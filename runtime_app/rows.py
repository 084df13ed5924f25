"""Set-based SQL for the hot path: prepared, bound on the server, through Django's connection and transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache
from typing import Any

import psycopg
from django.db import connection

Row = tuple[Any, ...]


def run(query: str, params: Sequence[Any] = ()) -> list[Row]:
    """Run one statement and return its rows (none for a statement that returns none)."""
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        cursor.execute(query.encode(), params, prepare=True)
        return cursor.fetchall() if cursor.description else []


def now() -> datetime:
    """The database's time."""
    found: datetime = run("SELECT runtime_now()")[0][0]
    return found


@cache
def insert_query(table: str, columns: tuple[tuple[str, str], ...], tail: str = "") -> str:
    """The statement that `insert` runs; its parameters are `arrays` of the rows."""
    names = ", ".join(name for name, _ in columns)
    arrays = ", ".join(f"%s::{kind}[]" for _, kind in columns)
    return f"INSERT INTO {table} ({names}) SELECT * FROM unnest({arrays}) {tail}"


def insert(table: str, columns: tuple[tuple[str, str], ...], values: Sequence[Row], tail: str = "") -> list[Row]:
    """Insert many rows by one statement. `columns` are (name, SQL type); `tail` is ON CONFLICT or RETURNING."""
    if not values:
        return []
    return run(insert_query(table, columns, tail), arrays(columns, values))


def arrays(columns: tuple[tuple[str, str], ...], values: Sequence[Row]) -> list[str]:
    """One array literal a column, of rows that have these columns."""
    return [array(kind, column) for (_, kind), column in zip(columns, zip(*values, strict=True), strict=True)]


def array(kind: str, values: Sequence[Any]) -> str:
    """A PostgreSQL array literal of this SQL type: several times quicker than adapting the values one by one."""
    write = _WRITERS[kind]
    return "{" + ",".join(["NULL" if value is None else write(value) for value in values]) + "}"


def _text(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


_WRITERS: dict[str, Callable[[Any], str]] = {
    "uuid": str, "int": str, "bigint": str, "smallint": str, "float8": str, "bool": str, "text": _text, "jsonb": _text,
    "timestamptz": lambda value: f'"{value.isoformat()}"', "bytea": lambda value: f'"\\\\x{value.hex()}"',
}
