"""Lists: every row once, polls that ask only for what changed, and no value that breaks them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import product
from urllib.parse import quote
from uuid import uuid4

from django.db import connection
from django.test.utils import CaptureQueriesContext

from runtime_app.births import NewTask, open_tasks
from runtime_app.console import keyset
from runtime_app.models import Task, User
from tests.console.conftest import Visitor
from tests.world import World

Visit = Callable[[User | None], Visitor]
ROW = re.compile(r'class="row-link" href="/tasks/([0-9a-f-]{36})/"')
OLDER = re.compile(r'href="(/tasks/\?[^"]*cursor=[^"]*)" rel="next"')


def _many(world: World, count: int) -> set[str]:
    """So many tasks of one moment, stored in one transaction."""
    new = [
        NewTask(tenant_id=world.amber.id, workflow="noop3", workflow_version=1, request_key=f"many-{n}",
                request_sha256="0" * 64, actor="system", order_ref=f"ORD-{n}")
        for n in range(count)
    ]  # fmt: skip
    return {str(id) for id in open_tasks(new)}


def test_a_walk_meets_each_row_once_while_rows_change_and_come(world: World, visit: Visit) -> None:
    """C48: a thousand tasks of one moment; between the pages some change their state and new ones come."""
    there = _many(world, 1000)
    sam, path, met = visit(world.sam), "/tasks/", list[str]()
    while path:
        page = sam.text(path)
        met += ROW.findall(page)
        Task.objects.filter(id__in=list(there)[: len(met)]).update(attention="LOOKALIKES")
        world.ask(world.order(), 100)
        found = OLDER.search(page)
        path = found.group(1).replace("&amp;", "&") if found else ""
    assert len(met) == len(set(met)) and there <= set(met)
    assert len(met) >= 1000


def test_a_cursor_that_we_did_not_write_is_a_page_that_says_so(world: World, visit: Visit) -> None:
    """C48: 400, never 500."""
    olga = visit(world.olga)
    cursors = [
        "x", "9999999", "\x00", "AAAA", "WzEsMl0", "W10", "bnVsbA", "\U0001f600", "a" * 5000, "..", "' OR 1=1 --", "-1",
        "WyIwMDAxLTAxLTAxVDAwOjAwOjAwKzE0OjAwIiwgIjAiXQ", keyset.write(datetime.min.replace(tzinfo=UTC), uuid4()),
    ]  # fmt: skip
    for path, cursor in product(("/tasks/", "/approvals/", "/approvals/?show=decided", "/reconciliation/"), cursors):
        answer = olga.client.get(path, {"cursor": cursor, **({"show": "decided"} if "decided" in path else {})})
        assert answer.status_code == 400 and b"We could not read that" in answer.content, (path, cursor)


def test_hostile_values_find_nothing_and_break_nothing(world: World, visit: Visit) -> None:
    """Bad input: zero bytes, surrogates, huge numbers and long text in every place of the address."""
    olga = visit(world.olga)
    long = ("1" * 400, "[" * 3000, "x" * 50_000)
    for value in ("\x00", "\ufffd", str(2**63), *long, "NaN", "%", "<b>", "\u202e", "' OR 1=1"):
        for path in ("/tasks/", "/approvals/", "/reconciliation/", "/tasks/new/"):
            names = ("q", "status", "show", "next", "page", "page_size")
            answer = olga.client.get(path, dict.fromkeys(names, value))
            assert answer.status_code in {200, 403}, (path, value[:20], answer.status_code)
        assert olga.client.get(f"/tasks/{quote(value[:200], safe='')}/").status_code == 404
    for path in ("/tasks/not-a-uuid/", f"/approvals/{'f' * 32}/", "/tasks/%ff%00/"):
        assert olga.client.get(path).status_code == 404, path


def test_hostile_bytes_in_the_address_and_the_form(world: World, visit: Visit) -> None:
    """Raw bytes that are no UTF-8, in query, cookie and form: 4xx or an ordinary page, and nothing stored."""
    asked = world.approval(world.ask(world.order(), 6000))
    page = f"/approvals/{asked.id}/"
    ada = visit(world.ada)
    hidden = ada.form(page)
    assert ada.client.get("/tasks/?q=%ff%fe%00&status=%ff&cursor=").status_code == 200
    ada.client.cookies["tz"] = "../../etc/passwd\x00"
    assert ada.client.get("/tasks/").status_code == 200
    for name, value in (("revision", "9" * 400), ("revision", "1.0"), ("fingerprint", "\x00"), ("nonce", "\x00"),
                        ("approval", "\ufffd"), ("decision", "\x00"), ("decision", "approve\x00"), ("reason", "\x00"),
                        ("nonce", "short"), ("revision", str(2**63)), ("revision", "true")):  # fmt: skip
        answer = ada.send(page, {"decision": "approve", "reason": "r", **hidden, name: value})
        assert 400 <= answer.status_code < 500, (name, value, answer.status_code)
    big = ada.send(page, {**hidden, "decision": "approve", "reason": "x" * 300_000})
    assert big.status_code in {400, 413} and not asked.decisions.exists()


def test_a_poll_gets_only_the_region_and_only_when_it_changed(world: World, visit: Visit) -> None:
    """Console rule 6: ETag and 304; a whole page is never taken from a cache."""
    task = world.ask(world.order(), 6000)
    asked = world.approval(task)
    sam = visit(world.sam)
    for path in ("/tasks/", "/reconciliation/", f"/tasks/{task.id}/story/"):
        first = sam.get(path, hx_request="true")
        assert first.status_code == 200 and b"<html" not in first.content and "HX-Request" in first["Vary"]
        assert "no-store" in first["Cache-Control"]
        if path == "/tasks/":
            same = sam.get(path, hx_request="true", if_none_match=first["ETag"])
            assert (same.status_code, same.content) == (304, b"")
            world.decide(world.ada, asked)
            world.finish(task)
            changed = sam.get(path, hx_request="true", if_none_match=first["ETag"])
            assert changed.status_code == 200 and b"Completed" in changed.content
    moved = sam.get(f"/tasks/{task.id}/story/?seen=1", hx_request="true")
    assert b"The task has moved on" in moved.content


def test_a_state_filters_and_an_unknown_one_is_no_filter(world: World, visit: Visit) -> None:
    """Filters are addresses that can be kept."""
    done, waiting = world.ask(world.order(), 100), world.ask(world.order(), 6000)
    world.approval(waiting)
    world.finish(done)
    sam = visit(world.sam)
    assert set(ROW.findall(sam.text("/tasks/?status=completed"))) == {str(done.id)}
    assert set(ROW.findall(sam.text("/tasks/?status=waiting_approval"))) == {str(waiting.id)}
    assert len(ROW.findall(sam.text("/tasks/?status=nonsense"))) == 2
    assert "No task is in this state" in sam.text("/tasks/?status=failed")


def test_a_list_asks_as_much_for_many_rows_as_for_one(world: World, visit: Visit) -> None:
    """Lesson 28: no question to the database for each row."""
    sam = visit(world.sam)
    counts = []
    for _ in range(2):
        world.approval(world.ask(world.order(), 6000))
        told = []
        for path in ("/tasks/", "/approvals/", "/reconciliation/", "/"):
            with CaptureQueriesContext(connection) as asked:
                sam.text(path)
            told.append((path, len(asked)))
        counts.append(told)
        for _more in range(3):
            world.approval(world.ask(world.order(), 6000))
    assert counts[0] == counts[1] and max(number for _, number in counts[0]) <= 20
