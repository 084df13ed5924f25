"""The API, version 1, put together: routes, refusals, and the document that describes both."""

from __future__ import annotations

import logging
from typing import Any

from csp.decorators import csp_update
from django.core.exceptions import RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError
from ninja.openapi.schema import OpenAPISchema

from runtime_app.api import events, parts, problems, tasks, words
from runtime_app.api.bodies import StrictParser
from runtime_app.errors import FieldErrors, RuntimeAppError

log = logging.getLogger(__name__)
DESCRIPTION = """\
Ask for tasks that wait for people and move money, and read what became of them. Every call carries the key of a
service account, which is bound to one tenant; unknown ids and those of other tenants get the same answer. Amounts are
whole minor units. Refusals are problem details (RFC 9457) with a stable `code`. People decide in the console only.
"""


class DescribedAPI(NinjaAPI):
    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:
        schema = super().get_openapi_schema(**options)
        for operations in schema["paths"].values():
            for operation in operations.values():
                for status, response in operation["responses"].items():
                    _retype(int(status), response)
        return schema


def _retype(status: int, response: dict[str, Any]) -> None:
    content = response.get("content", {})
    if status >= 400 and "application/json" in content:
        content[problems.MEDIA_TYPE] = content.pop("application/json")


api = DescribedAPI(
    title="Countersign", version="1", description=DESCRIPTION, urls_namespace="api-v1", parser=StrictParser(),
    # Swagger's style sheet draws its arrows as data: images; nothing else is loosened.
    docs_decorator=csp_update({"img-src": ["'self'", "data:"]}),
)
api.add_router("", tasks.router)
api.add_router("", parts.router)
api.add_router("", events.router)


@api.exception_handler(RuntimeAppError)
def _refused(request: HttpRequest, error: RuntimeAppError) -> HttpResponse:
    return problems.refused(error)


@api.exception_handler(ValidationError)
def _invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    return problems.refused(FieldErrors(words.told(error.errors)))


@api.exception_handler(AuthenticationError)
def _unauthenticated(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
    return problems.refused(problems.Unauthenticated())


@api.exception_handler(HttpError)
def _http(request: HttpRequest, error: HttpError) -> HttpResponse:
    # Ninja wraps whatever a parser raises into a 400 of its own; what we raised is what we mean.
    cause = error.__cause__
    return problems.refused(cause) if isinstance(cause, RuntimeAppError) else problems.plain(error.status_code)


@api.exception_handler(RequestDataTooBig)
def _too_large(request: HttpRequest, error: RequestDataTooBig) -> HttpResponse:
    return problems.plain(413)


@api.exception_handler(Http404)
def _not_found(request: HttpRequest, error: Http404) -> HttpResponse:
    return problems.plain(404)


@api.exception_handler(OperationalError)
@api.exception_handler(InterfaceError)
def _unavailable(request: HttpRequest, error: Exception) -> HttpResponse:
    log.warning("%s %s was not available: %s", request.method, request.path, error)
    return problems.plain(503)
