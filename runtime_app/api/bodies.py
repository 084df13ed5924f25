"""Reading a request's body as JSON that has one meaning, before anything else looks at it.

Refused, each with the field's name: names that occur twice, NaN and Infinity, numbers no column holds, text that
cannot be stored (zero bytes, lone surrogates) and nesting without an end. `json.loads` takes all of these.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import islice
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from ninja.parser import Parser

from runtime_app.api.problems import Malformed, TooLarge, WrongMediaType
from runtime_app.errors import FieldErrors

DEEPEST = 16
LONGEST_NUMBER = 25  # characters; enough for every column and every double people write
MOST_ERRORS = 20
BODY = "body"  # the field's name when the whole body is meant


class _Refused:
    """Stands in the parsed tree where something unacceptable stood, so that its path can be told."""

    def __init__(self, why: str) -> None:
        self.why = why


class StrictParser(Parser):
    """The API's only reader of bodies."""

    def parse_body(self, request: HttpRequest) -> dict[str, Any]:
        return read_object(body_of(request))


def body_of(request: HttpRequest) -> bytes:
    """The bytes, once they claim to be JSON and are not too many."""
    if request.content_type != "application/json":
        raise WrongMediaType
    charset = (request.content_params or {}).get("charset", "utf-8")
    if charset.lower().replace("-", "") != "utf8":
        raise WrongMediaType("Send the body in UTF-8.")
    # Django looks at Content-Length only, which a chunked request has not.
    if len(request.body) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
        raise TooLarge
    return request.body


def safe(name: str) -> str:
    """A name that somebody sent, short and visible, so that it can be told back."""
    name = name[:80]
    return name if name.isprintable() else name.encode("unicode_escape").decode()


def read_object(body: bytes) -> dict[str, Any]:
    """The object that `body` holds. Raises Malformed for what is no JSON, FieldErrors for what has no clean meaning."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise Malformed({BODY: "Send the body in UTF-8."}) from None
    try:
        value = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_constant, parse_int=_int, parse_float=_float
        )
    except RecursionError:
        raise FieldErrors({BODY: f"Nest at most {DEEPEST} levels deep."}) from None
    except ValueError as error:
        raise Malformed({BODY: f"This is not JSON: {error}."}) from None
    if not isinstance(value, dict):
        raise FieldErrors({BODY: "Send one JSON object."})
    errors = dict(islice(_faults(value, "", 1), MOST_ERRORS))
    if errors:
        raise FieldErrors(errors)
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for name, value in pairs:
        read[name] = _Refused("This is given twice.") if name in read else value
    return read


def _constant(name: str) -> _Refused:
    return _Refused(f"{name} is not a number that can be stored.")


def _int(text: str) -> int | _Refused:
    return int(text) if len(text) <= LONGEST_NUMBER else _Refused("This number is too large.")


def _float(text: str) -> float | _Refused:
    number = float(text) if len(text) <= 4 * LONGEST_NUMBER else math.inf
    return number if math.isfinite(number) else _Refused("This number is too large.")


def _faults(value: Any, path: str, depth: int) -> Iterator[tuple[str, str]]:
    """Every (field, sentence) that stands against this value, in order."""
    if isinstance(value, _Refused):
        yield path or BODY, value.why
    elif isinstance(value, str):
        if not _can_be_stored(value):
            yield path or BODY, "This text has characters that cannot be stored."
    elif isinstance(value, (dict, list)):
        if depth > DEEPEST:
            yield path or BODY, f"Nest at most {DEEPEST} levels deep."
            return
        for name, part in value.items() if isinstance(value, dict) else enumerate(value):
            inner = _inner(path, name)
            if isinstance(name, str) and not _can_be_stored(name):
                yield inner, "This name has characters that cannot be stored."
            yield from _faults(part, inner, depth + 1)


def _can_be_stored(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= c <= "\udfff" for c in text)


def _inner(path: str, name: str | int) -> str:
    if isinstance(name, int):
        return f"{path}[{name}]"
    return f"{path}.{safe(name)}" if path else safe(name)
