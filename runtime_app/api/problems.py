"""Refusals as RFC 9457 problem details: one shape for every answer under /api/ and /hooks/ that is not a success."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.http import HttpResponse

from runtime_app.errors import FieldErrors, RuntimeAppError

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER = 5  # seconds; a database that restarts is back about then

# By status, for refusals that come from below our own code: (code, detail).
_PLAIN: dict[int, tuple[str, str]] = {
    400: ("bad_request", "This request cannot be read."),
    403: ("forbidden", "You may not do that."),
    404: ("not_found", "There is nothing here that you may see."),
    405: ("method_not_allowed", "This address does not take this method."),
    413: ("too_large", "This request is too large."),
    500: ("internal", "Something went wrong here; it has been logged."),
    503: ("unavailable", "Something this needs does not answer right now; try again in a moment."),
}
_TITLES = {
    400: "Bad request", 401: "Not signed in", 403: "Forbidden", 404: "Not found", 405: "Method not allowed",
    409: "Conflict", 410: "Gone", 413: "Too large", 415: "Unsupported media type", 422: "Not acceptable",
    500: "Internal error", 503: "Unavailable",
}
# What of a refusal's facts a caller may read, and under which name: `status` itself is the HTTP status (RFC 9457).
_TOLD = {"status": "current_status", "revision": "revision", "task_id": "task_id"}


class Unauthenticated(RuntimeAppError):
    """Send a live key of a service account as `Authorization: Bearer <key>`."""

    code = "unauthenticated"
    status = 401


class TooLarge(RuntimeAppError):
    """This request is too large."""

    code = "too_large"
    status = 413


class WrongMediaType(RuntimeAppError):
    """Send the body as `Content-Type: application/json`."""

    code = "unsupported_media_type"
    status = 415


class Malformed(FieldErrors):
    """The body cannot be read."""

    code = "malformed"
    status = 400


class CursorGone(RuntimeAppError):
    """This cursor is from before the system was restored; read the state anew and start without a cursor."""

    code = "cursor_gone"
    status = 410


def respond(
    status: int, code: str, detail: str, *, errors: Mapping[str, str] | None = None, **more: Any
) -> HttpResponse:
    """A problem response. `more` are members beside the standard ones."""
    body: dict[str, Any] = {
        "type": "about:blank", "title": _TITLES.get(status, "Refused"), "status": status, "code": code,
        "detail": detail, **more,
    }
    if errors is not None:
        body["errors"] = [{"field": field, "message": message} for field, message in errors.items()]
    response = HttpResponse(json.dumps(body, cls=DjangoJSONEncoder), status=status, content_type=MEDIA_TYPE)
    response["Cache-Control"] = "no-store"
    if status == 401:
        response["WWW-Authenticate"] = 'Bearer realm="countersign"'
    if status == 503:
        response["Retry-After"] = str(RETRY_AFTER)
    return response


def refused(error: RuntimeAppError) -> HttpResponse:
    """What a refusal of ours looks like from outside. Not found always looks the same, whatever was not found."""
    if error.status == 404:
        return plain(404)
    told = {name: error.facts[fact] for fact, name in _TOLD.items() if fact in error.facts}
    # A task's own fields keep their names when they are given inside the `fields` of an input.
    fields = error.errors.items() if isinstance(error, FieldErrors) else None
    errors = {name.removeprefix("fields."): why for name, why in fields} if fields is not None else None
    return respond(error.status, error.code, error.message, errors=errors, **told)


def plain(status: int) -> HttpResponse:
    """A problem that says no more than its status does."""
    code, detail = _PLAIN.get(status, ("refused", "This request was refused."))
    return respond(status, code, detail)
