"""The OpenAPI document is the contract: it lists what is served, and what is served is as it says."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.staticfiles import finders
from django.test import Client
from django.urls import get_resolver

from tests.api.callers import Caller, fresh_key, refund, told
from tests.world import World

CALLS = {
    ("post", "/api/v1/tasks"), ("get", "/api/v1/tasks"), ("get", "/api/v1/tasks/{task_id}"),
    ("get", "/api/v1/tasks/{task_id}/events"), ("get", "/api/v1/tasks/{task_id}/stream"),
    ("get", "/api/v1/events/stream"),
    ("post", "/api/v1/tasks/{task_id}/input"), ("post", "/api/v1/tasks/{task_id}/amend"),
    ("post", "/api/v1/tasks/{task_id}/cancel"), ("get", "/api/v1/tasks/{task_id}/operations"),
    ("get", "/api/v1/tasks/{task_id}/attempts"), ("get", "/api/v1/tasks/{task_id}/approvals"),
}


@pytest.fixture
def document() -> dict[str, Any]:
    return told(Client().get("/api/v1/openapi.json"))  # type: ignore[arg-type, no-any-return]


def test_it_lists_every_call_that_is_served(document: dict[str, Any]) -> None:
    listed = {(method, path) for path, methods in document["paths"].items() for method in methods}
    assert listed == CALLS
    served = {
        re.sub(r"<(?:str:)?(\w+)>", r"{\1}", f"/{outer.pattern}{inner.pattern}")
        for outer in get_resolver().url_patterns
        for nested in getattr(outer, "url_patterns", [])
        if str(nested.pattern) == "api/v1/"
        for inner in nested.url_patterns
        for outer in [nested]
    }
    assert served - {"/api/v1/openapi.json", "/api/v1/docs", "/api/v1/"} == {path for _, path in CALLS}


def test_it_declares_every_refusal_and_its_media_type(document: dict[str, Any]) -> None:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            declared = operation["responses"]
            assert {"401", "422", "503"} <= set(declared), path
            assert "{task_id}" not in path or "404" in declared, path
            if method == "post":
                assert {"400", "403", "409", "413", "415"} <= set(declared), path
            for status, response in declared.items():
                if int(status) >= 400:
                    assert list(response["content"]) == ["application/problem+json"], (path, status)
            assert operation["security"], path
    streamed = document["paths"]["/api/v1/events/stream"]["get"]["responses"]["200"]["content"]
    assert list(streamed) == ["text/event-stream"]


def test_bodies_are_closed_and_amounts_have_their_range(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    for name in ("TaskBody", "InputBody", "AmendBody", "CancelBody"):
        assert schemas[name]["additionalProperties"] is False
    amount = schemas["TaskBody"]["properties"]["amount_minor"]
    assert (amount["type"], amount["minimum"], amount["maximum"]) == ("integer", 1, 10**15)
    assert "default" not in amount, "null is the one value that may not be sent"
    assert schemas["TaskBody"]["required"] == ["workflow", "order_ref"]


def test_answers_have_the_members_it_says(world: World, shop: Caller, document: dict[str, Any]) -> None:
    def members(name: str) -> set[str]:
        return set(document["components"]["schemas"][name]["properties"])

    task = told(shop.post("/tasks", refund(world.order(), amount_minor=100), key=fresh_key()))
    world.until(lambda: told(shop.get(f"/tasks/{task['id']}"))["status"] == "completed")
    assert set(task) == members("TaskOut")
    assert set(told(shop.get("/tasks"))["tasks"][0]) == members("TaskOut")
    for part, name in (("events", "EventOut"), ("operations", "OperationOut"), ("attempts", "AttemptOut")):
        assert set(told(shop.get(f"/tasks/{task['id']}/{part}"))[part][0]) == members(name)
    problem = told(shop.post("/tasks", {}, key="k"))
    assert set(problem) <= members("Problem")


def test_the_docs_page_needs_nothing_from_elsewhere() -> None:
    """No CDN, and nothing that the content security policy refuses."""
    answer = Client().get("/api/v1/docs")
    page = answer.content.decode()
    assert answer.status_code == 200 and "//cdn" not in page
    sources = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert len(sources) >= 3 and all(source.startswith("/static/") for source in sources)
    assert all(finders.find(source.removeprefix("/static/")) for source in sources)
    scripts = re.findall(r"<script([^>]*)>", page)
    assert all("src=" in attributes or "application/json" in attributes for attributes in scripts)
    policy = answer["Content-Security-Policy"]
    assert "default-src 'self'" in policy and "unsafe" not in policy and "http" not in policy
