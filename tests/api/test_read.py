"""Reading tasks and their parts: pages without gaps, nothing of another tenant, and few queries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runtime_app import tasks
from runtime_app.births import NewTask, open_tasks
from runtime_app.models import Task, User
from tests.api.callers import Caller, assert_problem, fresh_key, refund, told
from tests.world import World


def _import(world: World, many: int, *, order: str = "ORD-1", **given: Any) -> list[str]:
    """So many tasks in one transaction, all of one moment."""
    new = [
        NewTask(
            tenant_id=world.amber.id, workflow="refund", workflow_version=1, request_key=f"k-{uuid4().hex}",
            request_sha256="", actor="service:import", order_ref=order, amount_minor=100, currency="USD", **given,
        )
        for _ in range(many)
    ]
    open_tasks(new)
    return [str(task.id) for task in new]


def _walk(caller: Caller, meanwhile: Callable[[], object] = lambda: None, **query: Any) -> list[dict[str, Any]]:
    met: list[dict[str, Any]] = []
    cursor: dict[str, Any] = {}
    while True:
        page = told(caller.get("/tasks", **query, **cursor))
        met += page["tasks"]
        meanwhile()
        if page["next_cursor"] is None:
            return met
        cursor = {"cursor": page["next_cursor"]}


def test_a_walk_meets_every_task_once_while_tasks_change_and_are_added(world: World, shop: Caller) -> None:
    """C48: a thousand tasks of one moment, in pages of fifty."""
    imported = _import(world, 1000)
    turn = iter(range(1000))

    def meanwhile() -> None:
        for n in range(5):
            tasks.cancel(world.rita, imported[next(turn) * 7 % 1000], reason=f"Meanwhile {n}")
        _import(world, 2)

    met = [task["id"] for task in _walk(shop, meanwhile, limit=50)]
    assert sorted(met) == sorted(imported)
    assert Task.objects.filter(status="cancelled").count() == 100


def test_lists_filter_by_status_and_order_and_keep_the_filter_over_pages(world: World, shop: Caller) -> None:
    wanted = _import(world, 5, order="ORD-A")
    _import(world, 5, order="ORD-B")
    tasks.cancel(world.rita, wanted[0], reason="Not this one")
    assert sorted(t["id"] for t in _walk(shop, order_ref="ORD-A", limit=2)) == sorted(wanted)
    assert sorted(t["id"] for t in _walk(shop, order_ref="ORD-A", status="queued", limit=2)) == sorted(wanted[1:])
    assert [t["id"] for t in _walk(shop, status="cancelled")] == wanted[:1]
    assert _walk(shop, order_ref="ORD-C") == []


def test_a_cursor_is_of_one_list_of_one_tenant(world: World, shop: Caller, birch_shop: Caller) -> None:
    _import(world, 3)
    cursor = told(shop.get("/tasks", limit=1))["next_cursor"]
    assert told(shop.get("/tasks", limit=1, cursor=cursor))["tasks"]
    assert_problem(birch_shop.get("/tasks", cursor=cursor), 422, "invalid", "cursor")
    assert_problem(shop.get("/tasks", cursor=cursor, status="queued"), 422, "invalid", "cursor")
    tampered = [cursor[:n] + ("A" if cursor[n] != "A" else "B") + cursor[n + 1 :] for n in range(len(cursor))]
    hostile = ["", "0", "p=zzz", "\x00", "\ud7ff", "=", "a" * 400, cursor + "=", cursor[:-1], cursor + "A", "null"]
    for value in [*tampered, *hostile, " " + cursor]:
        assert_problem(shop.get("/tasks", cursor=value), 422, "invalid", "cursor")


def test_absurd_query_values_are_refused_by_name(shop: Caller, subtests: pytest.Subtests) -> None:
    """C48."""
    limits = ["0", "201", "-1", "1e2", "1.0", " 5", "1_0", "\uff15", "", "x", "9" * 400, "true", "null", "5\n"]
    for value in [*limits, "2147483648"]:
        with subtests.test(value[:20]):
            assert_problem(shop.get("/tasks", limit=value), 422, "invalid", "limit")
    for name, values in {
        "status": ["", "Queued", "all", "queued,ready", "\x00"],
        "order_ref": ["", "a b", "caf\u00e9", "\x00", "x" * 201],
        "page": ["9999999"], "page_size": ["100000"], "offset": ["1"],
    }.items():
        for value in values:
            with subtests.test(value[:20], name=name):
                assert_problem(shop.get("/tasks", **{name: value}), 422, "invalid", name)
    assert_problem(shop.get("/tasks", limit=["1", "2"]), 422, "invalid", "limit")


def test_a_page_costs_the_same_queries_for_one_row_and_for_many(world: World, shop: Caller) -> None:
    def queries(path: str, **query: Any) -> int:
        with CaptureQueriesContext(connection) as captured:
            assert shop.get(path, **query).status_code == 200
        return len(captured)

    for n in range(12):
        shop.post("/tasks", refund("ORD-1", session=f"chat-{n}"), key=f"k{n}")
    assert queries("/tasks", limit=1) == queries("/tasks", limit=12) <= 2
    task = world.ask(world.order(captured=50000), 100)
    world.finish(task)
    few = {part: queries(f"/tasks/{task.id}/{part}") for part in ("events", "operations", "attempts", "approvals")}
    assert max(few.values()) <= 4, few


def test_the_parts_of_a_refund_tell_it_whole(world: World, shop: Caller) -> None:
    order = world.order()
    id = told(shop.post("/tasks", refund(order), key=fresh_key()))["id"]
    task = Task.objects.get(id=id)
    world.decide(world.ada, world.approval(task), reason="Seen the parcel")
    world.finish(task)
    events = told(shop.get(f"/tasks/{id}/events"))
    assert [e["type"] for e in events["events"]] == world.events(task) and not events["more"]
    assert [e["seq"] for e in events["events"]] == list(range(1, events["next_after"] + 1))
    assert all(isinstance(e["data"], dict) and e["actor"] and e["at"] for e in events["events"])

    (operation,) = told(shop.get(f"/tasks/{id}/operations"))["operations"]
    assert (operation["state"], operation["amount_minor"]) == ("succeeded", 6000)
    assert operation["payment_ref"] == f"pi_{order}"
    assert [call["kind"] for call in operation["calls"]] == ["submit"] and operation["provider_ref"]

    (approval,) = told(shop.get(f"/tasks/{id}/approvals"))["approvals"]
    assert approval["state"] == "approved" and approval["facts"]["amount_minor"] == 6000
    (decision,) = approval["decisions"]
    assert (decision["person"], decision["verdict"], decision["reason"]) == ("ada", "approve", "Seen the parcel")
    assert (decision["review"], decision["for_person"], decision["withdrawn_at"]) == ("approval", None, None)
    assert approval["reviews"] == [{"name": "approval", "quorum": 1}]

    attempts = told(shop.get(f"/tasks/{id}/attempts"))["attempts"]
    assert attempts and all(attempt["steps"] for attempt in attempts)
    assert {step["name"] for attempt in attempts for step in attempt["steps"]} >= {"on_queued", "on_ready"}
    assert told(shop.get(f"/tasks/{id}"))["status"] == "completed"


def test_events_are_read_in_pages_and_from_where_one_was(world: World, shop: Caller) -> None:
    task = world.ask(world.order(), 100)
    world.finish(task)
    seen: list[int] = []
    after, more = 0, True
    while more:
        page = told(shop.get(f"/tasks/{task.id}/events", after=after, limit=2))
        seen += [event["seq"] for event in page["events"]]
        after, more = page["next_after"], page["more"]
    assert seen == list(range(1, len(world.events(task)) + 1))
    end = told(shop.get(f"/tasks/{task.id}/events", after=after))
    assert end == {"events": [], "next_after": after, "more": False}
    for value in ("-1", "x", "1.0", "2147483648", "9" * 400):
        assert_problem(shop.get(f"/tasks/{task.id}/events", after=value), 422, "invalid", "after")
        assert_problem(shop.get(f"/tasks/{task.id}/attempts", limit=value), 422, "invalid", "limit")


PARTS = ("", "/events", "/operations", "/attempts", "/approvals")
CHANGES = {
    "/input": {"revision": 1, "fields": {}}, "/amend": {"revision": 1, "reason": "x"}, "/cancel": {"reason": "x"},
}


def test_foreign_unknown_and_malformed_ids_are_one_answer(world: World, shop: Caller, birch_shop: Caller) -> None:
    """M04, M29: with a positive control, so that the sameness is not an accident."""
    task = world.ask(world.order())
    before = Task.objects.values().get(id=task.id)
    ids = [str(uuid4()), "x", "%00", "1", str(task.id)[:-1], f"{task.id}x", "%ff", "null", "9" * 400]
    answers = set()
    for part in PARTS:
        assert shop.get(f"/tasks/{task.id}{part}").status_code == 200
        answers |= {birch_shop.get(f"/tasks/{task.id}{part}").content}
        answers |= {caller.get(f"/tasks/{id}{part}").content for id in ids for caller in (shop, birch_shop)}
    for change, body in CHANGES.items():
        answers |= {birch_shop.post(f"/tasks/{task.id}{change}", body).content}
        answers |= {caller.post(f"/tasks/{id}{change}", body).content for id in ids for caller in (shop, birch_shop)}
    assert len(answers) == 1, answers
    assert_problem(birch_shop.get(f"/tasks/{task.id}"), 404, "not_found")
    assert Task.objects.values().get(id=task.id) == before
    assert told(birch_shop.get("/tasks")) == {"tasks": [], "next_cursor": None}
    assert told(birch_shop.get("/tasks", order_ref=task.order_ref))["tasks"] == []
    assert shop.post(f"/tasks/{task.id}/cancel", CHANGES["/cancel"]).status_code == 200


def test_a_session_is_not_a_key(world: World) -> None:
    """A signed-in person reads pages; the API's calls are for keys only."""
    person: User = world.rita
    caller = Caller(None)
    caller.sign_in(person)
    assert_problem(caller.get("/tasks"), 401, "unauthenticated")
