"""Applications that call the API, as tests write them: `shop.post("/tasks", body, key="k-1")`."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import httpx
from django.http import HttpResponse
from django.test import Client

from runtime_app.models import User

Answer = HttpResponse | httpx.Response


class Caller:
    """One application with its key; `raw` bodies go out as they are."""

    def __init__(self, key: str | None) -> None:
        self._client = Client(raise_request_exception=False)
        self._headers = {"Authorization": f"Bearer {key}"} if key is not None else {}

    def sign_in(self, person: User) -> None:
        """Send a browser's session too."""
        self._client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")

    def get(self, path: str, /, **query: Any) -> HttpResponse:
        return self._client.get(f"/api/v1{path}", query, headers=self._headers)  # type: ignore[return-value]

    def post(
        self, path: str, body: Any = None, *, raw: bytes | None = None, key: str | None = None,
        content_type: str = "application/json", headers: dict[str, str] | None = None,
    ) -> HttpResponse:
        sent = dict(self._headers, **(headers or {}))
        if key is not None:
            sent["Idempotency-Key"] = key
        data = raw if raw is not None else json.dumps(body).encode()
        return self._client.post(  # type: ignore[return-value]
            f"/api/v1{path}", data, content_type=content_type, headers=sent
        )

    def call(self, method: str, path: str, **options: Any) -> HttpResponse:
        """Any method on any address, without the /api/v1 before it."""
        return self._client.generic(method, path, headers=self._headers, **options)  # type: ignore[return-value]


def refund(order: str, **given: Any) -> dict[str, Any]:
    """The body of a request for a refund that needs an approver, but for what `given` says."""
    body = {
        "workflow": "refund", "order_ref": order, "amount_minor": 6000, "currency": "USD", "on_behalf_of": "rita",
    }
    return {name: value for name, value in {**body, **given}.items() if value is not ...}


def fresh_key() -> str:
    """A key for a request that reaches the provider: the run's sandbox remembers the keys of every test before."""
    return f"k-{uuid4().hex}"


def told(response: Answer) -> Any:
    return json.loads(response.content)


def assert_problem(response: Answer, status: int, code: str, *fields: str) -> Any:
    """The answer is this problem, and it names these fields (and, when any are given, no others)."""
    body = told(response)
    assert (response.status_code, body.get("code")) == (status, code), body
    assert response.headers["Content-Type"] == "application/problem+json"
    assert body["status"] == status and body["title"] and body["detail"] and body["type"]
    if fields:
        assert [error["field"] for error in body["errors"]] == list(fields), body
        assert all(error["message"] for error in body["errors"])
    return body
