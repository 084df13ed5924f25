"""What is in front of every page: a sign-in, and only the methods it has."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from runtime_app import rows
from runtime_app.console.tenancy import NoTenant

View = Callable[..., HttpResponse]


def page(*methods: str) -> Callable[[View], View]:
    """Signed-in people only; HEAD goes with GET; a person without a tenant is told so."""

    def around(view: View) -> View:
        @wraps(view)
        def inner(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            try:
                return view(request, *args, **kwargs)
            except NoTenant:
                return render(request, "console/no_tenant.html", status=403)

        allowed = [*methods, *(["HEAD"] if "GET" in methods else [])]
        return require_http_methods(allowed)(login_required(inner))

    return around


def now() -> datetime:
    """The database's now, by which every age on a page is told."""
    return rows.now()
