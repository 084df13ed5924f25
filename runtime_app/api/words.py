"""What pydantic found, in our own sentences and under the field's own name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from runtime_app.api.bodies import safe
from runtime_app.money import MAX_MINOR

_BY_FIELD = {"amount_minor": f"Use a whole number of minor units between 1 and {MAX_MINOR}."}
_BY_TYPE = {
    "missing": "This is required.",
    "extra_forbidden": "There is no such field.",
    "string_type": "Use text.",
    "int_type": "Use a whole number.",
    "int_parsing": "Use a whole number.",
    "int_parsing_size": "This number is too large.",
    "dict_type": "Use an object.",
    "enum": "Use one of: {expected}.",
    "greater_than_equal": "Use {ge} or more.",
    "less_than_equal": "Use {le} or less.",
    "less_than": "Use less than {lt}.",
}


def told(errors: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Each field once, with its first error."""
    by_field: dict[str, str] = {}
    for error in errors:
        name = _name(error["loc"])
        by_field.setdefault(name, _sentence(name, error))
    return by_field


def _name(loc: Iterable[Any]) -> str:
    source, *path = [safe(str(part)) for part in loc]
    if source == "body":
        path = path[1:]  # the name of the view's own argument
    return ".".join(path) or source


def _sentence(name: str, error: Mapping[str, Any]) -> str:
    kind = error["type"]
    if kind != "missing" and name in _BY_FIELD:
        return _BY_FIELD[name]
    if kind == "value_error":
        return str(error["ctx"]["error"])
    return _BY_TYPE.get(kind, "This cannot be accepted.").format(**error.get("ctx", {}))
