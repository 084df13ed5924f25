"""A part of a page that asks for itself again while it is looked at."""

from __future__ import annotations

import hashlib
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.shortcuts import render
from django.template.loader import render_to_string


def answer(request: HttpRequest, page: str, region: str, context: dict[str, Any]) -> HttpResponse:
    """The whole page, or only its region when a poll asks; 304 when the poll has seen the region as it is."""
    html = render_to_string(region, context)
    etag = f'"{hashlib.sha256(html.encode("utf-8", "replace")).hexdigest()[:32]}"'
    response: HttpResponse
    if request.headers.get("HX-Request") != "true":
        response = render(request, page, {**context, "region": html, "etag": etag})
    elif request.headers.get("If-None-Match") == etag:
        response = HttpResponseNotModified()
    else:
        response = HttpResponse(html)
    response["ETag"] = etag
    response["Vary"] = "HX-Request, Cookie"
    return response
