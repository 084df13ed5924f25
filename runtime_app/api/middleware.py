"""Under /api/ and /hooks/ every refusal is a problem, also one that Django or a middleware made as a page."""

from __future__ import annotations

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

from runtime_app.api import problems
from runtime_app.errors import RuntimeAppError

PREFIX = ("/api/", "/hooks/")


class ProblemsMiddleware(MiddlewareMixin):
    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """What our own code refuses outside of a route, and a database that is away; anything else stays an error."""
        return answer_to(exception) if request.path.startswith(PREFIX) else None

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if not request.path.startswith(PREFIX) or response.status_code < 400:
            return response
        if response.headers.get("Content-Type", "") == problems.MEDIA_TYPE:
            return response
        problem = problems.plain(response.status_code)
        for kept in ("Allow", "Retry-After"):
            if kept in response.headers:
                problem[kept] = response.headers[kept]
        return problem


def answer_to(error: Exception) -> HttpResponse | None:
    """The problem that tells this error, or None when it is a fault of ours and must stay one."""
    if isinstance(error, RuntimeAppError):
        return problems.refused(error)
    if isinstance(error, (OperationalError, InterfaceError)):
        return problems.plain(503)
    return None
