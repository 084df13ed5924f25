"""The API's addresses, and the two by which others ask how the process is."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import path, re_path

from runtime_app.api import health, hooks, metrics, problems
from runtime_app.api.v1 import api


def nothing_here(request: HttpRequest, rest: str = "") -> HttpResponse:
    """An address under /api/ or /hooks/ that does not exist is told as a problem too."""
    return problems.plain(404)


nothing_here.csrf_exempt = True  # type: ignore[attr-defined]  # it does nothing, and is not to answer 403 to a POST

urlpatterns = [
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("metrics", metrics.metrics),
    path("api/v1/", api.urls),
    path("hooks/<str:provider>/<uuid:account>", hooks.hook),
    re_path(r"^(?:api|hooks)/(?P<rest>.*)$", nothing_here),
]
