"""What every page shares: the reader's zone, refusals as pages in words, and nothing kept in caches."""

from __future__ import annotations

import zoneinfo

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils import timezone
from django.utils.cache import patch_cache_control
from django.utils.deprecation import MiddlewareMixin

from runtime_app.console import errors
from runtime_app.errors import RuntimeAppError

_NOT_PAGES = ("/api/", "/hooks/", "/static/", "/healthz", "/readyz", "/metrics")


class ConsoleMiddleware(MiddlewareMixin):
    def process_request(self, request: HttpRequest) -> HttpResponseBase | None:
        if request.path.startswith(_NOT_PAGES):
            return None
        try:
            timezone.activate(_zone(request))
        except (OperationalError, InterfaceError):
            return errors.unavailable(request)
        return None

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Refusals become pages here once, so that no view has to."""
        if request.path.startswith(_NOT_PAGES):
            return None
        if isinstance(exception, RuntimeAppError):
            return errors.refused(request, exception)
        if isinstance(exception, (OperationalError, InterfaceError)):
            return errors.unavailable(request)
        return None

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if not request.path.startswith(_NOT_PAGES):
            timezone.deactivate()
            if "Cache-Control" not in response.headers:
                patch_cache_control(response, private=True, no_store=True)
        return response


def _zone(request: HttpRequest) -> zoneinfo.ZoneInfo:
    """The person's own zone, else the browser's, else UTC; a name that is no zone counts as none."""
    wished = [getattr(request.user, "time_zone", ""), request.COOKIES.get("tz", "").replace("%2F", "/")]
    for name in wished:
        try:
            if name:
                return zoneinfo.ZoneInfo(name)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            continue
    return zoneinfo.ZoneInfo("UTC")
