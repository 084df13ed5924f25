"""Reading JSON that another system sent, when a wrong reading would be worse than none."""

from __future__ import annotations

import json
from typing import Any, NoReturn


class Unreadable(ValueError):
    """This is not JSON that has one meaning."""


def _no_constant(name: str) -> NoReturn:
    raise Unreadable(f"{name} is not a number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) != len(pairs):
        raise Unreadable("a name occurs twice in one object")
    return read


def read_value(body: bytes) -> Any:
    """The JSON value that `body` holds. Duplicate names, NaN and endless nesting raise Unreadable."""
    try:
        return json.loads(body.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Unreadable(str(error) or type(error).__name__) from None


def read_object(body: bytes) -> dict[str, Any]:
    """The object that `body` holds; another kind of value raises Unreadable too."""
    value = read_value(body)
    if not isinstance(value, dict):
        raise Unreadable("not an object")
    return value
