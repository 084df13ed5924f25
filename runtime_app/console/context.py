"""What every page needs."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest


def console(request: HttpRequest) -> dict[str, Any]:
    return {"environment": settings.ENVIRONMENT, "version": settings.VERSION}
