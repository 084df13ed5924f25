"""Asking for a task."""

from __future__ import annotations

from runtime_app.models import Task
from tests.api.callers import Caller, assert_problem, refund, told
from tests.world import World


def test_a_request_is_accepted_with_its_task_at_once(world: World, shop: Caller) -> None:
    """M16: 202 with the id; task, event and the next step are stored together."""
    answer = shop.post("/tasks", refund("ORD-7", reason="Broken", session="chat-9", metadata={"b": [1, 2.5, None]}), key="k-1")
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


def test_it_needs_a_live_key(world: World) -> None:
    """M04: no key, an unknown one, a revoked one and a person's password are the same 401."""
    world.account.revoked_at = world.account.created_at
    world.account.save(update_fields=["revoked_at"])
    for key in (None, "", "csk_unknown", "ä\u00ff", world.key):
        answer = Caller(key).get("/tasks")
        assert_problem(answer, 401, "unauthenticated")
        assert answer["WWW-Authenticate"].startswith("Bearer")
