"""Who calls: an application by its key, and on a task's stream also a signed-in person in a browser."""

from __future__ import annotations

from typing import cast

from asgiref.sync import sync_to_async
from django.db import connection
from django.http import HttpRequest
from ninja.security import HttpBearer

from runtime_app import members
from runtime_app.access import Principal
from runtime_app.models import ServiceAccount, User


class Key(HttpBearer):
    """`Authorization: Bearer csk_…`"""

    def authenticate(self, request: HttpRequest, token: str) -> ServiceAccount | None:
        return members.account_of_key(token)


class StreamKey(HttpBearer):
    """As `Key`, without keeping a database connection for as long as the stream lives."""

    is_async = True

    async def authenticate(self, request: HttpRequest, token: str) -> ServiceAccount | None:
        return await sync_to_async(_account)(token)


async def signed_in(request: HttpRequest) -> User | None:
    """The person of the browser's session, for a stream that a page opens."""
    return await sync_to_async(_person)(request)


def _account(token: str) -> ServiceAccount | None:
    try:
        return members.account_of_key(token)
    finally:
        connection.close()


def _person(request: HttpRequest) -> User | None:
    try:
        return request.user if request.user.is_authenticated else None
    finally:
        connection.close()


def account(request: HttpRequest) -> ServiceAccount:
    """The service account behind a request that a route with `Key` let in."""
    return cast(ServiceAccount, request.auth)  # type: ignore[attr-defined]  # ninja sets it


def principal(request: HttpRequest) -> Principal:
    return cast(Principal, request.auth)  # type: ignore[attr-defined]  # ninja sets it
