"""Every page in every state it can show."""

from __future__ import annotations

from collections.abc import Callable

from runtime_app.models import User
from tests.console.conftest import Visitor
from tests.world import World

Visit = Callable[[User | None], Visitor]


def test_each_role_starts_with_what_is_its_own(world: World, visit: Visit) -> None:
    """M38 to M40: the start page and the navigation follow the rights, not the roles' names."""
    world.approval(world.ask(world.order(), 6000))
    rita, ada, olga = (visit(who).text("/") for who in (world.rita, world.ada, world.olga))
    assert "/tasks/new/" in rita and "/approvals/" not in rita and "/reconciliation/" not in rita
    assert "Waiting for your decision" in ada and 'class="count">1' in ada
    assert "/reconciliation/" in olga and "/tasks/new/" not in olga


def test_a_task_reads_as_a_story_at_every_moment(world: World, visit: Visit) -> None:
    """M39, console 5: what happened, what comes next and who must act, also while the outcome is not known."""
    order = world.order()
    task = world.ask(order, 6000, reason="the sleeve was torn")
    rita = visit(world.rita)
    page = f"/tasks/{task.id}/"
    assert f"Rita Moss asked for a refund of 60.00 USD on order {order}." in rita.text(page)
    asked = world.approval(task)
    waiting = rita.text(page)
    assert "so approvers were asked" in waiting and "other than Rita Moss" in waiting
    world.sandbox.fault("F4", times=1, match={"payment_ref": f"pi_{order}"})
    world.retime(reconcile_after=[30])  # it stays unknown for as long as the pages are read
    world.decide(world.ada, asked, reason="slip seen")
    world.until(lambda: "operation.unknown" in world.events(task))
    unknown = visit(world.olga).text(page)
    assert "Ada Stone approved it." in unknown and "slip seen" in unknown
    assert "It is not known whether" in unknown and "Nothing new is sent until" in unknown
    operation = world.operation(task)
    listed = visit(world.olga).text("/reconciliation/")
    assert order in listed and "Outcome unknown" in listed
    detail = visit(world.olga).text(f"/reconciliation/{operation.id}/")
    assert "Calls to the provider" in detail and operation.idempotency_key in detail
    world.clock(seconds=60)
    world.finish(task)
    done = rita.text(page)
    assert "60.00 USD went back" in done and "It is completed, and proved." in done and "How it ended" in done
    assert "Every outcome is proved" in visit(world.olga).text("/reconciliation/")


def test_missing_input_is_given_by_a_form(world: World, visit: Visit) -> None:
    """M08: the field that lacks is asked for in major units; a wrong one is told beside the field."""
    order = world.order()
    task = world.ask(order, None, currency=None)
    world.until(lambda: world.events(task)[-1] == "task.waiting_input")
    page, action = f"/tasks/{task.id}/", f"/tasks/{task.id}/input/"
    sam = visit(world.sam)
    hidden = sam.form(page, action)
    wrong = sam.send(action, {**hidden, "input-amount_minor": "7,00", "input-currency": "USD"})
    assert wrong.status_code == 422 and b"Write the amount in USD with digits only" in wrong.content
    assert sam.send(action, {**hidden, "input-amount_minor": "7.00", "input-currency": "USD"}).status_code == 302
    world.finish(task)
    assert [r["amount_minor"] for r in world.effects(order)] == [700]
    assert "Sam Field gave what was missing: amount, currency." in sam.text(page)


def test_a_request_is_changed_and_cancelled_by_forms(world: World, visit: Visit) -> None:
    """M15: amended before the decision it is asked anew; cancelled before submission it ends."""
    task = world.ask(world.order(), 6000)
    world.approval(task)
    page = f"/tasks/{task.id}/"
    rita = visit(world.rita)
    amend = rita.form(page, f"{page}amend/")
    same = rita.send(f"{page}amend/", {**amend, "amend-amount": "60.00", "amend-reason": ""})
    assert same.status_code == 422 and b"Nothing differs" in same.content
    changed = rita.send(f"{page}amend/", {**amend, "amend-amount": "70.00", "amend-reason": ""})
    assert changed.status_code == 302
    stale = rita.send(f"{page}amend/", {**amend, "amend-amount": "71.00", "amend-reason": ""})
    assert stale.status_code == 409
    again = world.approval(task)
    text = visit(world.ada).text(f"/approvals/{again.id}/")
    assert "What changed since it was asked before" in text and "70.00 USD" in text
    cancel = rita.form(page, f"{page}cancel/")
    assert rita.send(f"{page}cancel/", {**cancel, "cancel-reason": ""}).status_code == 422
    assert rita.send(f"{page}cancel/", {**cancel, "cancel-reason": "by mistake"}).status_code == 302
    assert "Rita Moss cancelled it: by mistake." in rita.text(page)
    assert rita.send(f"{page}cancel/", {**cancel, "cancel-reason": "again"}).status_code == 409


def test_an_approver_is_told_why_there_is_no_form(world: World, visit: Visit) -> None:
    """Console page 2: already decided, expired, superseded and not allowed are each said in words."""
    task = world.ask(world.order(), 6000)
    asked = world.approval(task)
    page = f"/approvals/{asked.id}/"
    assert "not decide them" in visit(world.sam).text(page)
    assert visit(world.rita).get(page).status_code == 404
    world.clock(seconds=world.timing.approval_deadline + 1)
    assert "The time to decide ended at" in visit(world.ada).text(page)
    world.finish(task)
    assert "The time to decide ended at" in visit(world.ada).text(page)
    assert asked.task.order_ref in visit(world.ada).text("/approvals/?show=decided")


def test_any_id_finds_the_task(world: World, visit: Visit) -> None:
    """M39: order, payment, task, operation, provider's refund, request key and approval."""
    order = world.order()
    task = world.ask(order, 6000, session="chat-77")
    asked = world.approval(task)
    world.decide(world.ada, asked)
    world.finish(task)
    operation = world.operation(task)
    other = world.ask(world.order(), 100)
    sam = visit(world.sam)
    of_operation = (operation.id, operation.provider_ref)
    for wanted in (order, f"pi_{order}", task.id, *of_operation, task.request_key, asked.id, "chat-77"):
        found = sam.client.get("/tasks/", {"q": str(wanted)}).content.decode()
        assert f"/tasks/{task.id}/" in found and f"/tasks/{other.id}/" not in found, wanted
    assert "Nothing has this id" in sam.text("/tasks/?q=nothing-like-it")
