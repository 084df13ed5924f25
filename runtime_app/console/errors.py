"""Refusals and failures as pages. None of them reads the database, so that they can be shown when it is away."""

from __future__ import annotations

import logging

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from runtime_app.errors import FieldErrors, RuntimeAppError

log = logging.getLogger(__name__)
_PAGES = {400: "400.html", 403: "403.html", 404: "404.html", 409: "409.html", 422: "400.html", 503: "503.html"}


def _page(template: str, status: int, **context: object) -> HttpResponse:
    return HttpResponse(render_to_string(template, context), status=status)


def refused(request: HttpRequest, error: RuntimeAppError) -> HttpResponse:
    """The page of a refusal that its view did not show itself. Not found says nothing more than that."""
    message = " ".join(error.errors.values()) if isinstance(error, FieldErrors) else error.message
    shown = "" if error.status in {403, 404} and message == (type(error).__doc__ or "").strip() else message
    return _page(_PAGES.get(error.status, "400.html"), error.status, message=shown)


def unavailable(request: HttpRequest) -> HttpResponse:
    log.warning("a page was not available: %s", request.path)
    response = _page("503.html", 503)
    response["Retry-After"] = "5"
    return response


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return _page("403_csrf.html", 403)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _page("400.html", 400)


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _page("403.html", 403)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _page("404.html", 404)


def failed(request: HttpRequest) -> HttpResponse:
    return _page("500.html", 500)
