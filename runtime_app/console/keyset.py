"""Pages by position, not by offset: a row that exists at the start of a walk is met exactly once."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar
from uuid import UUID

from django.db.models import Model, Q, QuerySet

from runtime_app.errors import RuntimeAppError

Row = TypeVar("Row", bound=Model)
SIZE = 50


class BadCursor(RuntimeAppError):
    """This page address is not one that we gave out."""

    code = "bad_cursor"


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    rows: list[Row]
    older: str | None  # the cursor of the page behind this one
    first: bool


def write(at: datetime, id: UUID) -> str:
    return base64.urlsafe_b64encode(json.dumps([at.isoformat(), str(id)]).encode()).decode().rstrip("=")


def read(cursor: str) -> tuple[datetime, UUID]:
    """The position a cursor names; BadCursor for anything that we did not write."""
    if not cursor.isascii() or len(cursor) > 200:
        raise BadCursor
    try:
        at, id = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        moment = datetime.fromisoformat(at)
        if moment.tzinfo is None or not 2000 <= moment.year <= 9000:
            raise BadCursor
        return moment, UUID(id)
    except (binascii.Error, UnicodeDecodeError, RecursionError, ValueError, TypeError, AttributeError) as error:
        raise BadCursor from error


def page(
    rows: QuerySet[Row], cursor: str, *, by: str, newest_first: bool = True, at: Callable[[Row], datetime] | None = None
) -> Page[Row]:
    """One page of `rows` by (`by`, id), and the cursor of the next. `at` reads `by` from a row."""
    sign, beyond = ("-", "lt") if newest_first else ("", "gt")
    if cursor:
        moment, id = read(cursor)
        # The outer bound is for the index; the inner one says what comes behind within one moment.
        rows = rows.filter(Q(**{f"{by}__{beyond}e": moment})).filter(
            Q(**{f"{by}__{beyond}": moment}) | Q(**{by: moment, f"id__{beyond}": id})
        )
    found = list(rows.order_by(f"{sign}{by}", f"{sign}id")[: SIZE + 1])
    shown = found[:SIZE]
    more = len(found) > SIZE
    last: Any = shown[-1] if more else None
    older = write(at(last) if at else getattr(last, by), last.pk) if last is not None else None
    return Page(shown, older, first=not cursor)
