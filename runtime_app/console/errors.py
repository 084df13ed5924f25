"""Refusals as pages."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form that does not come from one of our pages is refused; nothing was done."""
    return render(request, "403.html", status=403)
