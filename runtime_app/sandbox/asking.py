"""Reading what the control plane was asked: each thing as it should be, or Unusable with the sentence to answer."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from runtime_app.sandbox.faults import Unusable
from runtime_app.sandbox.http11 import Request

_REF = re.compile(r"[A-Za-z0-9_.:-]{1,128}", re.ASCII)
_PRINTABLE = re.compile(r"[!-~]{1,500}", re.ASCII)


def read_body(request: Request) -> dict[str, Any]:
    try:
        asked = json.loads(request.body)
    except (ValueError, RecursionError):
        raise Unusable("The body is not JSON.") from None
    if not isinstance(asked, dict):
        raise Unusable("The body is a JSON object.")
    return asked


def read_query(request: Request, *known: str) -> dict[str, str]:
    query = dict(parse_qsl(request.query, keep_blank_values=True))
    if unknown := sorted(set(query) - set(known)):
        raise Unusable(f"The query does not take {', '.join(map(repr, unknown))}; it takes {', '.join(known)}.")
    return query


def only(asked: dict[str, Any], where: str, *known: str) -> None:
    if unknown := sorted(set(asked) - set(known)):
        raise Unusable(f"{where} does not take {', '.join(map(repr, unknown))}; it takes {', '.join(known)}.")


def ref(asked: dict[str, Any], name: str) -> str:
    value = asked.get(name)
    if not isinstance(value, str) or not _REF.fullmatch(value):
        raise Unusable(f"`{name}` is a text of letters, digits, and _ . : - with at most 128 characters.")
    return value


def perhaps_ref(asked: dict[str, Any], name: str) -> str | None:
    return None if asked.get(name) is None else ref(asked, name)


def text(asked: dict[str, Any], name: str, most: int = 2000) -> str | None:
    value = asked.get(name)
    if value is not None and (not isinstance(value, str) or len(value) > most):
        raise Unusable(f"`{name}` is a text of at most {most} characters, or null.")
    return value


def number(asked: dict[str, Any], name: str, default: int, least: int, most: int) -> int:
    value = asked.get(name, default)
    if type(value) is not int or not least <= value <= most:
        raise Unusable(f"`{name}` is a whole number from {least} to {most}.")
    return value


def secret(asked: dict[str, Any], name: str) -> str | None:
    value = asked.get(name)
    if value is not None and (not isinstance(value, str) or not _PRINTABLE.fullmatch(value)):
        raise Unusable(f"`{name}` is a text of 1 to 500 printable ASCII characters without spaces, or null.")
    return value


def address(asked: dict[str, Any], name: str) -> str | None:
    """An http or https address without a password in it."""
    value = asked.get(name)
    if value is None:
        return None
    try:
        parts = urlsplit(value if isinstance(value, str) and _PRINTABLE.fullmatch(value) else "")
        if parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc and parts.port != 0:
            return str(value)
    except ValueError:
        pass
    raise Unusable(f"`{name}` is an http or https address without user and password, or null.")


def whole(query: dict[str, str], name: str, default: int) -> int:
    asked = query.get(name, str(default))
    if not (asked.isascii() and asked.isdigit() and len(asked) < 16):
        raise Unusable(f"`{name}` is a whole number.")
    return int(asked)
