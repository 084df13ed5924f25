"""The reader's time zone for the length of a request."""

from __future__ import annotations

import zoneinfo
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils import timezone


class ConsoleMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        name = getattr(getattr(request, "user", None), "time_zone", "") or "UTC"
        with timezone.override(zoneinfo.ZoneInfo(name)):
            return self.get_response(request)
