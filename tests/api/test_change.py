"""Giving input, amending and cancelling: each under the revision that was seen."""

from __future__ import annotations

from typing import Any

import pytest

from runtime_app.models import Task
from runtime_app.states import Status
from tests.api.callers import Caller, assert_problem, fresh_key, refund, told
from tests.world import World


@pytest.fixture
def waiting(world: World, shop: Caller) -> dict[str, Any]:
    """A task that waits for its amount and currency."""
    id = told(shop.post("/tasks", refund(world.order(), amount_minor=..., currency=...), key=fresh_key()))["id"]
    return world.until(  # type: ignore[no-any-return]
        lambda: task if (task := told(shop.get(f"/tasks/{id}")))["status"] == "waiting_input" else None
    )


def test_what_was_missing_is_given_and_the_task_goes_on(world: World, shop: Caller, waiting: dict[str, Any]) -> None:
    """M08."""
    given = {"revision": waiting["revision"], "fields": {"amount_minor": 6000, "currency": "USD"}}
    answer = shop.post(f"/tasks/{waiting['id']}/input", given)
    assert answer.status_code == 200 and told(answer)["waiting_for"] == {}
    assert (told(answer)["status"], told(answer)["amount_minor"]) == ("queued", 6000)
    world.until(lambda: told(shop.get(f"/tasks/{waiting['id']}"))["status"] == "waiting_approval")
    problem = assert_problem(shop.post(f"/tasks/{waiting['id']}/input", given), 409, "conflict")
    assert problem["current_status"] == "waiting_approval" and problem["revision"] > waiting["revision"]


def test_input_is_as_strict_as_a_request(
    world: World, shop: Caller, waiting: dict[str, Any], subtests: pytest.Subtests
) -> None:
    """C43."""
    right = '"currency": "USD"'
    for amount in ("true", '"100"', "100.0", "1e2", "0", "-1", "null", '""', "[]", "{}", "NaN", "1" + "0" * 400,
                   '100, "amount_minor": 100'):
        with subtests.test(amount[:30]):
            raw = f'{{"revision": {waiting["revision"]}, "fields": {{{right}, "amount_minor": {amount}}}}}'.encode()
            assert_problem(shop.post(f"/tasks/{waiting['id']}/input", raw=raw), 422, "invalid", "amount_minor")
    for body, field in (
        ({"fields": {}}, "revision"), ({"revision": "1", "fields": {}}, "revision"),
        ({"revision": True, "fields": {}}, "revision"), ({"revision": 2**40, "fields": {}}, "revision"),
        ({"revision": 0, "fields": {}}, "revision"), ({"revision": 2, "fields": []}, "fields"),
        ({"revision": 2, "fields": None}, "fields"), ({"revision": 2}, "fields"),
        ({"revision": 2, "fields": {}, "more": 1}, "more"),
        ({"revision": waiting["revision"], "fields": {"amount_minor": 1, "currency": "USD", "reason": "x"}}, "reason"),
        ({"revision": waiting["revision"], "fields": {"amount_minor": 1}}, "currency"),
    ):
        with subtests.test(str(body)):
            assert_problem(shop.post(f"/tasks/{waiting['id']}/input", body), 422, "invalid", field)
    assert told(shop.get(f"/tasks/{waiting['id']}")) == waiting


def test_a_lost_guard_tells_what_is_now_and_records_nothing(
    world: World, shop: Caller, waiting: dict[str, Any]
) -> None:
    """M12."""
    task = Task.objects.get(id=waiting["id"])
    told_before = world.events(task)
    for path, body in (
        ("input", {"fields": {"amount_minor": 1, "currency": "USD"}}), ("amend", {"amount_minor": 7}),
    ):
        problem = assert_problem(shop.post(f"/tasks/{task.id}/{path}", {"revision": 1, **body}), 409, "conflict")
        assert (problem["revision"], problem["current_status"]) == (task.revision, "waiting_input")
    assert world.events(task) == told_before


def test_a_request_is_amended_and_judged_anew(world: World, shop: Caller) -> None:
    id = told(shop.post("/tasks", refund(world.order()), key=fresh_key()))["id"]
    task = Task.objects.get(id=id)
    old = world.approval(task)
    task.refresh_from_db()
    changes = {"amount_minor": 7000, "reason": "More is broken"}
    answer = shop.post(f"/tasks/{id}/amend", {"revision": task.revision, **changes})
    assert answer.status_code == 200 and told(answer).items() >= {"status": "queued", **changes}.items()
    new = world.approval(task)
    assert new.id != old.id and new.facts["amount_minor"] == 7000
    states = [a["state"] for a in told(shop.get(f"/tasks/{id}/approvals"))["approvals"]]
    assert states == ["superseded", "open"]


def test_an_amendment_says_what_changes_in_the_right_type(
    world: World, shop: Caller, subtests: pytest.Subtests
) -> None:
    id = told(shop.post("/tasks", refund("ORD-1"), key="k"))["id"]
    for body, field in (
        ({"revision": 1}, "amount_minor"), ({"revision": 1, "amount_minor": None}, "amount_minor"),
        ({"revision": 1, "reason": None}, "reason"), ({"revision": 1, "amount_minor": True}, "amount_minor"),
        ({"revision": 1, "amount_minor": "7"}, "amount_minor"), ({"revision": 1, "reason": "x" * 501}, "reason"),
        ({"revision": 1, "currency": "EUR"}, "currency"), ({"amount_minor": 7}, "revision"),
        ({"revision": None, "amount_minor": 7}, "revision"), ({"revision": 1.0, "amount_minor": 7}, "revision"),
    ):
        with subtests.test(str(body)[:60]):
            assert_problem(shop.post(f"/tasks/{id}/amend", body), 422, "invalid", field)
    assert told(shop.get(f"/tasks/{id}"))["revision"] == 1


def test_before_submission_cancelling_ends_it(world: World, shop: Caller) -> None:
    """M15."""
    id = told(shop.post("/tasks", refund("ORD-1"), key="k"))["id"]
    for body in ({}, {"reason": None}, {"reason": "  "}, {"reason": 1}):
        assert_problem(shop.post(f"/tasks/{id}/cancel", body), 422, "invalid", "reason")
    answer = shop.post(f"/tasks/{id}/cancel", {"reason": "Changed my mind"})
    assert (answer.status_code, told(answer)["status"]) == (200, "cancelled")
    problem = assert_problem(shop.post(f"/tasks/{id}/cancel", {"reason": "Again"}), 409, "conflict")
    assert problem["current_status"] == "cancelled"


def test_after_submission_the_wish_is_kept_and_nothing_can_be_amended(world: World, shop: Caller) -> None:
    """M15: what happened is found out, and told as it was."""
    order = world.order()
    world.sandbox.fault("F21", match={"payment_ref": f"pi_{order}"}, times=1, seconds=3600, then="succeeded")
    id = told(shop.post("/tasks", refund(order, amount_minor=100), key=fresh_key()))["id"]
    task = Task.objects.get(id=id)
    world.until(lambda: Task.objects.get(id=id).status == Status.RECONCILING)
    task.refresh_from_db()
    for n in range(2):
        answer = shop.post(f"/tasks/{id}/cancel", {"reason": f"Changed my mind {n}"})
        assert (answer.status_code, told(answer)["status"]) == (202, "reconciling")
        assert told(answer)["cancel_wished_at"] is not None
    amended = shop.post(f"/tasks/{id}/amend", {"revision": task.revision, "amount_minor": 7})
    problem = assert_problem(amended, 409, "conflict")
    assert problem["current_status"] == "reconciling"
    assert world.events(task).count("task.cancel_wished") == 1
