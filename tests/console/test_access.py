"""Who sees which page: the same for every address, whatever is known of an id."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.urls import URLPattern

from runtime_app import members
from runtime_app.console.urls import urlpatterns
from runtime_app.models import Account, Operation, Task, User
from tests.console.conftest import Visitor
from tests.console.rows import a_case, a_day
from tests.world import PASSWORD, TABLES, World

Visit = Callable[[User | None], Visitor]
OPEN = {"login", "logout"}  # addresses in front of the sign-in
UNTOUCHED = tuple(t for t in TABLES if t not in {"runtime_clock", "django_session"})


def rows() -> dict[str, str]:
    """A digest of every table that a page could change."""
    with connection.cursor() as cursor:
        found = {}
        for table in UNTOUCHED:
            cursor.execute(f"SELECT md5(coalesce(string_agg(t::text, '|' ORDER BY t::text), '')) FROM {table} AS t")
            found[table] = cursor.fetchone()[0]
    return found


def addresses(
    task: Task, approval: object, operation: object, case: object = None, day: object = None
) -> dict[str, str]:
    """Every address of the console, with the ids of these rows in it."""
    ids = {"task": task.id, "approval": approval, "reconciliation_operation": operation, "case": case, "day": day,
           "account": Account.objects.filter(tenant=task.tenant_id).values_list("id", flat=True).first()}
    told = {}
    for pattern in urlpatterns:
        assert isinstance(pattern, URLPattern) and pattern.name
        id = next((value for name, value in ids.items() if pattern.name.startswith(name)), "")
        path = str(pattern.pattern).replace("<uuid:id>", str(id or uuid4())).replace("<slug:slug>", "amber")
        told[pattern.name] = f"/{path}"
    return told


@pytest.fixture
def finished(world: World) -> dict[str, str]:
    """The addresses of one refund that has everything: a task, an approval and an operation."""
    task = world.ask(world.order(), 6000)
    asked = world.approval(task)
    world.decide(world.ada, asked)
    world.finish(task)
    operation = Operation.objects.get(task=task)
    case, day = a_case(world, "EXTERNAL_REFUND", operation), a_day(world)
    return addresses(task, asked.id, operation.id, case.id, day.id)


def with_ids(finished: dict[str, str]) -> dict[str, str]:
    return {name: path for name, path in finished.items() if any(c.isdigit() for c in path)}


def test_another_tenants_row_and_no_row_are_the_same_404(
    world: World, visit: Visit, finished: dict[str, str]
) -> None:
    """M04, S1: Bea may do everything in Birch, and learns nothing of Amber on any address, by no method."""
    bea = visit(world.bea)
    bea.client.handler.enforce_csrf_checks = False
    before = rows()
    assert len(with_ids(finished)) >= 7
    for (name, path), method in product(with_ids(finished).items(), ("get", "head", "post")):
        missing = "/".join(str(uuid4()) if len(part) == 36 else part for part in path.split("/"))
        foreign, nothing = (getattr(bea.client, method)(p, {"reason": "x"}) for p in (path, missing))
        # An address that has no such method says so, alike for all ids; every other is not found.
        assert foreign.status_code == nothing.status_code and foreign.status_code in {404, 405, 302}, name
        assert foreign.status_code != 302 or "task_story" in name, name
        assert foreign.content == nothing.content, name
    assert rows() == before


def test_another_tenants_rows_are_in_no_list_and_no_search(
    world: World, visit: Visit, finished: dict[str, str]
) -> None:
    """M29: neither listed nor counted nor found by any id."""
    bea, task = visit(world.bea), Task.objects.get()
    for path in ("/", "/tasks/", "/approvals/", "/approvals/?show=decided", "/reconciliation/"):
        assert task.order_ref not in bea.text(path)
    assert "Nothing has this id" in bea.text(f"/tasks/?q={task.id}")
    answer = bea.send("/tenant/", {**bea.form("/", "/accounts/logout/"), "tenant": "amber"})
    assert answer.status_code == 404


def test_without_a_sign_in_every_page_leads_to_it(world: World, visit: Visit, finished: dict[str, str]) -> None:
    """C18: also HEAD; and a POST without a session decides nothing."""
    nobody = visit(None)
    before = rows()
    for name, path in finished.items():
        if name in OPEN:
            continue
        for answer in (nobody.client.get(path), nobody.client.head(path)):
            assert answer.status_code in {302, 405}, (name, answer.status_code)
            assert answer.status_code == 405 or answer["Location"].startswith("/accounts/login/?next="), name
    assert rows() == before


def test_reading_changes_nothing(world: World, visit: Visit, finished: dict[str, str]) -> None:
    """Console rule 4: every address, by everybody, GET and HEAD."""
    open_task = world.ask(world.order(), 6000)
    asked = world.approval(open_task)
    for name, path in addresses(open_task, asked.id, uuid4()).items():
        finished[f"open {name}"] = path
    browsers = [visit(who) for who in (world.rita, world.ada, world.sam, world.olga, world.tom, world.ava)]
    before = rows()
    for browser in browsers:
        for name, path in finished.items():
            if "logout" in name:
                continue
            statuses = {browser.client.get(path).status_code, browser.client.head(path).status_code}
            assert statuses <= {200, 302, 403, 404, 405}, (name, statuses)
    assert rows() == before


def test_a_decision_needs_the_forms_token(world: World, visit: Visit) -> None:
    """C18: HEAD and GET five times without and with a session, POST without the token: one decision in the end."""
    task = world.ask(world.order(), 6000)
    asked = world.approval(task)
    page = f"/approvals/{asked.id}/"
    nobody, ada = visit(None), visit(world.ada)
    before = rows()
    for browser in (nobody, ada):
        for _ in range(5):
            browser.client.head(page)
            browser.client.get(page)
    hidden = ada.form(page)
    ada.client.get(page, {**hidden, "decision": "approve"})
    ada.client.head(page, {**hidden, "decision": "approve"})
    without = {name: value for name, value in hidden.items() if name != "csrfmiddlewaretoken"}
    refused = ada.send(page, {**without, "decision": "approve"})
    assert refused.status_code == 403 and b"This form is too old" in refused.content
    assert rows() == before
    assert ada.get(page)["Cache-Control"] == "private, no-store"
    assert ada.send(page, {**hidden, "decision": "approve"}).status_code == 302
    again = ada.client.post(page, {**hidden, "decision": "approve"}, follow=True)
    assert "Already decided by you" in again.content.decode()
    other_tab = ada.send(page, {**hidden, "nonce": "x" * 32, "decision": "reject", "reason": "no"})
    assert other_tab.status_code == 409 and b"Already decided by you" in other_tab.content
    assert [d.verdict for d in asked.decisions.all()] == ["approve"]


def test_the_loser_is_told_who_decided_and_that_nothing_was_recorded(world: World, visit: Visit) -> None:
    """C14: Abel read the same page; Ada was first."""
    task = world.ask(world.order(), 6000)
    asked = world.approval(task)
    page = f"/approvals/{asked.id}/"
    ada, abel = visit(world.ada), visit(world.abel)
    hers, his = ada.form(page), abel.form(page)
    assert ada.send(page, {**hers, "decision": "approve", "reason": ""}).status_code == 302
    lost = abel.send(page, {**his, "decision": "reject", "reason": "not plausible"})
    assert lost.status_code == 409
    text = lost.content.decode()
    assert "Ada Stone decided this first" in text and "Yours was not recorded" in text
    assert asked.decisions.count() == 1


def test_a_form_of_another_approval_decides_nothing(world: World, visit: Visit) -> None:
    """Lesson 37: a decision names its own question."""
    first, second = (world.approval(world.ask(world.order(), 6000)) for _ in range(2))
    ada = visit(world.ada)
    hidden = ada.form(f"/approvals/{first.id}/")
    refused = ada.send(f"/approvals/{second.id}/", {**hidden, "decision": "approve"})
    assert refused.status_code == 422 and not second.decisions.exists() and not first.decisions.exists()


def test_a_rejection_without_a_reason_is_refused_beside_the_field(world: World, visit: Visit) -> None:
    """M38: reject with a reason."""
    asked = world.approval(world.ask(world.order(), 6000))
    page = f"/approvals/{asked.id}/"
    ada = visit(world.ada)
    hidden = ada.form(page)
    refused = ada.send(page, {**hidden, "decision": "reject", "reason": " "})
    assert refused.status_code == 422 and b"Say why you reject it" in refused.content
    assert ada.send(page, {**hidden, "decision": "reject", "reason": "no slip"}).status_code == 302
    assert "Ada Stone rejected it." in visit(world.rita).text(f"/tasks/{asked.task_id}/")


def test_an_approver_asks_for_input_and_the_requester_answers(world: World, visit: Visit) -> None:
    """M38: ask for more; the question stands on the requester's page, and it is asked anew with the answer."""
    task = world.ask(world.order(), 6000)
    asked = world.approval(task)
    ada, rita = visit(world.ada), visit(world.rita)
    page = f"/approvals/{asked.id}/"
    ada.send(page, {**ada.form(page), "decision": "ask_input", "reason": "Which item?"})
    task_page, action = f"/tasks/{task.id}/", f"/tasks/{task.id}/input/"
    assert "Which item?" in rita.text(task_page)
    assert rita.send(action, {**rita.form(task_page, action), "input-answer": "The blue one."}).status_code == 302
    again = world.approval(task)
    text = ada.text(f"/approvals/{again.id}/")
    assert "The blue one." in text


def test_one_person_in_two_tenants_looks_at_one_at_a_time(world: World, visit: Visit) -> None:
    """Architecture rule 12: a switcher; a row of the other tenant names that tenant on its own page."""
    both = members.add_person(world.amber, "bo", PASSWORD, ["support"], full_name="Bo Both")
    members.add_person(world.birch, "bo", None, ["support"])
    task = world.ask(world.order(), 100)
    bo = visit(both)
    assert task.order_ref in bo.text("/tasks/")
    switch = bo.form("/tasks/", "/tenant/")
    answer: Any = bo.send("/tenant/", {**switch, "tenant": "birch"})
    assert (answer.status_code, answer["Location"]) == (302, "/tasks/")
    assert task.order_ref not in bo.text("/tasks/")
    assert "Nothing has this id" in bo.text(f"/tasks/?q={task.id}")
    assert "Amber Traders" in bo.text(f"/tasks/{task.id}/")
    assert bo.client.get("/tenant/").status_code == 405


def test_rights_that_are_gone_close_the_page_at_once(world: World, visit: Visit) -> None:
    """M21: read fresh at every request; an inactive person is signed out."""
    asked = world.approval(world.ask(world.order(), 6000))
    page = f"/approvals/{asked.id}/"
    ada = visit(world.ada)
    hidden = ada.form(page)
    members.take_role(world.ada, world.amber, "approver")
    assert ada.get(page).status_code == 404
    assert ada.send(page, {**hidden, "decision": "approve"}).status_code == 404
    assert ada.get("/").status_code == 403
    User.objects.filter(pk=world.ada.pk).update(is_active=False)
    assert ada.get("/")["Location"].startswith("/accounts/login/")
