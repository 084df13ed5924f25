"""Asking for a task: what is accepted, once per key, and stored whole."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

from runtime_app.models import Session, Task
from tests.api.callers import Caller, assert_problem, fresh_key, refund, told
from tests.api.web_process import Web, running_web
from tests.world import World


def test_a_request_is_accepted_with_its_task_at_once(world: World, shop: Caller) -> None:
    """M16: 202 with the id; task, event and the next step are stored together."""
    sent = refund("ORD-7", reason="Broken", session="chat-9", metadata={"b": [1, 2.5, None]})
    answer = shop.post("/tasks", sent, key="k-1")
    body = told(answer)
    assert answer.status_code == 202, body
    assert answer["Location"] == f"/api/v1/tasks/{body['id']}" == body["links"]["self"]
    assert "Idempotent-Replayed" not in answer
    task = Task.objects.get(id=body["id"])
    assert task.tenant == world.amber and task.service_account == world.account and task.due_at is not None
    assert world.events(task) == ["task.opened"]
    wanted = {
        "status": "queued", "revision": 1, "workflow": "refund", "workflow_version": 1, "request_key": "k-1",
        "order_ref": "ORD-7", "payment_ref": None, "amount_minor": 6000, "currency": "USD", "reason": "Broken",
        "on_behalf_of": "rita", "session": "chat-9", "metadata": {"b": [1, 2.5, None]}, "waiting_for": {},
        "parked_reason": None, "attention": None, "cancel_wished_at": None,
    }
    assert {name: body[name] for name in wanted} == wanted
    assert told(shop.get(f"/tasks/{body['id']}")) == body


def test_a_missing_amount_waits_for_input_and_says_so(world: World, shop: Caller) -> None:
    """M08: missing is not null, and neither is an empty string."""
    id = told(shop.post("/tasks", refund(world.order(), amount_minor=..., currency=...), key=fresh_key()))["id"]
    world.until(lambda: told(shop.get(f"/tasks/{id}"))["status"] == "waiting_input")
    waiting = told(shop.get(f"/tasks/{id}"))["waiting_for"]
    assert set(waiting) == {"amount_minor", "currency"} and all(waiting.values())


def test_it_needs_a_live_key(world: World) -> None:
    """M04: no key, an unknown one and a revoked one get the same 401."""
    world.account.revoked_at = world.account.created_at
    world.account.save(update_fields=["revoked_at"])
    bodies = set()
    for key in (None, "", "csk_unknown", "\u00e4\u00ff", "a\x00b", world.key):
        answer = Caller(key).get("/tasks")
        assert_problem(answer, 401, "unauthenticated")
        assert answer["WWW-Authenticate"].startswith("Bearer")
        bodies.add(answer.content)
    assert len(bodies) == 1


def test_a_key_is_the_same_task_for_the_same_meaning_only(world: World, shop: Caller, birch_shop: Caller) -> None:
    """C11: keys are per tenant; a replay is for the same meaning; anything else is a conflict, never an old answer."""
    order = world.order()
    sent = refund(order, amount_minor=1000)
    first = shop.post("/tasks", sent, key="K1")
    again = shop.post("/tasks", sent, key="K1")
    assert again.status_code == 202 and again["Idempotent-Replayed"] == "true"
    assert told(again)["id"] == told(first)["id"] and again["Location"] == first["Location"]

    spaced = json.dumps(dict(reversed(sent.items())), indent=3).encode()
    assert told(shop.post("/tasks", raw=spaced, key="K1"))["id"] == told(first)["id"]

    for other in ({"amount_minor": 1001}, {"order_ref": world.order()}, {"reason": "Other"}, {"metadata": {"a": 1}}):
        problem = assert_problem(shop.post("/tasks", {**sent, **other}, key="K1"), 409, "idempotency_conflict")
        assert problem["task_id"] == told(first)["id"] and "amount_minor" not in problem

    foreign = birch_shop.post("/tasks", {**sent, "on_behalf_of": "bea"}, key="K1")
    assert foreign.status_code == 202 and told(foreign)["id"] != told(first)["id"]
    assert "Idempotent-Replayed" not in foreign

    elsewhere = shop.post(f"/tasks/{told(first)['id']}/cancel", {"reason": "Changed my mind"}, key="K1")
    assert elsewhere.status_code == 200 and told(elsewhere)["status"] == "cancelled"
    assert Task.objects.count() == 2


def test_twenty_posts_of_one_key_at_once_are_one_task(world: World, web: Web) -> None:
    """C11, M16."""
    order = world.order()

    def ask(_: int) -> tuple[int, str, str]:
        with web.client(world.key) as client:
            sent = refund(order, session="chat-new")
            answer = client.post("/tasks", json=sent, headers={"Idempotency-Key": "K2"})
            return answer.status_code, answer.json()["id"], answer.headers.get("Idempotent-Replayed", "false")

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(ask, range(20)))
    assert {status for status, _, _ in answers} == {202}
    assert len({id for _, id, _ in answers}) == 1
    assert sorted(replayed for _, _, replayed in answers) == ["false"] + ["true"] * 19
    assert Task.objects.count() == 1 and Session.objects.count() == 1


def test_without_redis_a_request_is_accepted_all_the_same(world: World) -> None:
    """C24, M17: PostgreSQL has the work; the bell is only a bell."""
    with running_web({"REDIS_URL": "unix:///nowhere/redis.sock"}) as deaf, deaf.client(world.key) as client:
        answer = client.post("/tasks", json=refund(world.order()), headers={"Idempotency-Key": uuid4().hex})
        assert answer.status_code == 202
        ready = client.get(f"{deaf.url}/readyz")
        assert (ready.status_code, ready.json()["redis"]) == (200, "degraded")
        world.until(lambda: client.get(f"/tasks/{answer.json()['id']}").json()["status"] == "waiting_approval")
