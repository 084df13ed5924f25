"""Event streams, read from a real web process: exactly what happened, to those who may know, resumed where one was."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.db import connection
from django.test import Client

from runtime_app import births, members, tasks
from runtime_app.births import NewTask, open_tasks
from runtime_app.models import Event, Installation, Task, Tenant
from tests.api.callers import assert_problem
from tests.api.web_process import Follower, Web, database_url
from tests.world import World


def _open(tenant: Tenant, many: int = 1) -> list[Task]:
    """So many tasks in one transaction, each with its first event."""
    new = [
        NewTask(
            tenant_id=tenant.id, workflow="refund", workflow_version=1, request_key=f"k-{uuid4().hex}",
            request_sha256="", actor="service:import", order_ref="ORD-1",
        )
        for _ in range(many)
    ]
    open_tasks(new)
    return list(Task.objects.filter(id__in=[task.id for task in new]))


def _everything(tenant: Tenant) -> list[tuple[str, int]]:
    """The tenant's events in the order its stream has."""
    rows = Event.objects.filter(tenant=tenant).order_by("txid", "task_id", "seq")
    return [(str(task), seq) for task, seq in rows.values_list("task_id", "seq")]


def test_a_task_is_followed_from_its_first_event_on_and_as_it_happens(world: World, web: Web) -> None:
    """M35: the browser reads a stream whose id is the event's number."""
    task = world.ask(world.order())
    with closing(Follower(web, f"/tasks/{task.id}/stream", key=world.key)) as follower:
        assert follower.status == 200
        follower.sees(1)
        world.approval(task)
        follower.sees(len(world.events(task)))
    with web.client(world.key) as client:
        paged = client.get(f"/tasks/{task.id}/events").json()["events"]
    assert [frame.data for frame in follower.frames] == paged
    assert [f.id for f in follower.frames] == [str(n) for n in range(1, len(follower.frames) + 1)]


def test_a_broken_stream_goes_on_exactly_where_it_was(world: World, web: Web) -> None:
    """M35: by Last-Event-ID, which goes before the address's own `after`."""
    task = world.ask(world.order())
    path = f"/tasks/{task.id}/stream"
    with closing(Follower(web, path, key=world.key)) as first:
        first.sees(1)
    world.approval(task)  # happens while nobody listens
    with closing(Follower(web, f"{path}?after=0", key=world.key, last=first.id)) as second:
        tasks.cancel(world.rita, task.id, reason="Changed my mind")
        second.until(lambda: len(first.seen) + len(second.seen) == len(world.events(task)))
    assert first.seen + second.seen == [(str(task.id), n) for n in range(1, len(world.events(task)) + 1)]
    with closing(Follower(web, f"{path}?after=2", key=world.key)) as third:
        third.sees(len(world.events(task)) - 2)
    assert third.seen[0] == (str(task.id), 3)


def test_a_tenant_is_followed_in_one_order_and_nothing_of_another(world: World, web: Web) -> None:
    """M29, C38: two readers of Amber see the same in the same order; Birch sees its own only."""
    _open(world.amber, 3)
    with ExitStack() as stack:
        def follow(key: str, path: str = "/events/stream", **options: Any) -> Follower:
            return stack.enter_context(closing(Follower(web, path, key=key, **options)))

        live, all_of_it, birch = follow(world.key), follow(world.key, "/events/stream?after=0"), follow(world.birch_key)
        for follower in (live, all_of_it, birch):
            follower.opened()
        for _ in range(10):
            _open(world.amber, 2)
            _open(world.birch)
        amber = _everything(world.amber)
        all_of_it.sees(23)
        live.sees(20)
        birch.sees(10)
        assert all_of_it.seen == amber and live.seen == amber[3:]
        assert birch.seen == _everything(world.birch)

        middle = all_of_it.frames[6].id
        resumed = follow(world.key, last=middle)
        resumed.sees(16)
        assert resumed.seen == amber[7:]
        never_saw_any = follow(world.key)
        never_saw_any.opened()
        before = never_saw_any.id  # read now: the next event may arrive before anybody asks
        _open(world.amber)
        again = follow(world.key, last=before)
        again.sees(1)
        assert again.seen == _everything(world.amber)[-1:]


def test_an_event_that_commits_late_is_delivered_all_the_same(
    world: World, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C31: two transactions; the one with the lower id commits last."""
    held, go_on, ids = threading.Event(), threading.Event(), list[Any]()

    def hold(name: str) -> None:
        if name == "births.commit" and threading.current_thread() is late:
            held.set()
            assert go_on.wait(60)

    def open_late() -> None:
        try:
            ids.extend(_open(world.amber))
        finally:
            connection.close()

    late = threading.Thread(target=open_late)
    monkeypatch.setattr(births, "point", hold)
    with closing(Follower(web, "/events/stream", key=world.key)) as follower:
        follower.opened()
        late.start()
        assert held.wait(60)
        (early,) = _open(world.amber)
        with closing(Follower(web, f"/tasks/{early.id}/stream", key=world.key)) as one:
            # Two events of the other task have come through the same hub, so it has looked at the tenant as well.
            one.sees(1)
            tasks.cancel(world.rita, early.id, reason="Not this one")
            one.sees(len(world.events(early)))
        with closing(Follower(web, "/events/stream?after=0", key=world.key)) as second:
            second.opened()
            go_on.set()
            late.join(60)
            wanted = _everything(world.amber)
            for reader in (follower, second):
                assert reader.sees(len(wanted)) == wanted
    assert wanted[0] == (str(ids[0].id), 1), "the late one has the lower transaction id"


def test_a_revoked_key_ends_its_streams(world: World, web: Web) -> None:
    """C38: rights are looked at again while a stream lives."""
    (task,) = _open(world.amber)
    other, other_key = members.issue_key(world.amber, "reporting")
    with closing(Follower(web, "/events/stream", key=world.key)) as kept, ExitStack() as stack:
        gone = [
            stack.enter_context(closing(Follower(web, path, key=other_key)))
            for path in ("/events/stream", f"/tasks/{task.id}/stream")
        ]
        other.revoked_at = other.created_at
        other.save(update_fields=["revoked_at"])
        for follower in gone:
            assert follower.ended.wait(30)
            assert [frame.event for frame in follower.frames][-1:] == ["end"]
            again = Follower(web, "/events/stream", key=other_key, last=follower.id)
            assert again.status == 401
            again.close()
        tasks.cancel(world.rita, task.id, reason="Not this one")
        kept.sees(1)
        assert not kept.ended.is_set()
        assert all((str(task.id), 2) not in follower.seen for follower in gone)


def test_a_person_in_a_browser_follows_a_task_until_the_right_or_the_session_ends(world: World, web: Web) -> None:
    """M35, C38."""
    task = world.ask(world.order())
    with ExitStack() as stack:
        followers = {}
        for person in (world.sam, world.ava, world.rita):
            browser = Client()
            browser.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
            cookies = {name: morsel.value for name, morsel in browser.cookies.items()}
            follower = Follower(web, f"/tasks/{task.id}/stream", cookies=cookies)
            followers[person.username] = (stack.enter_context(closing(follower)), browser)
            follower.sees(1)
        members.take_role(world.sam, world.amber, "support")
        followers["ava"][1].logout()
        for name in ("sam", "ava"):
            assert followers[name][0].ended.wait(30)
        tasks.cancel(world.rita, task.id, reason="Changed my mind")
        rita = followers["rita"][0]
        rita.sees(len(world.events(task)))
        stranger = Client()
        stranger.force_login(world.bea, backend="django.contrib.auth.backends.ModelBackend")
        foreign = Follower(web, f"/tasks/{task.id}/stream", cookies={n: m.value for n, m in stranger.cookies.items()})
        assert foreign.status == 404
        foreign.close()


def test_streams_are_refused_like_everything_else(world: World, web: Web) -> None:
    (task,) = _open(world.amber)
    with web.client(world.key) as shop, web.client(world.birch_key) as birch, web.client() as nobody:
        unknown = [
            birch.get(f"/tasks/{task.id}/stream"), shop.get(f"/tasks/{uuid4()}/stream"), shop.get("/tasks/x/stream"),
            birch.get(f"/tasks/{task.id}"),
        ]
        assert {answer.content for answer in unknown} == {unknown[0].content} and unknown[0].status_code == 404
        for path in (f"/tasks/{task.id}/stream", "/events/stream"):
            assert_problem(nobody.get(path), 401, "unauthenticated")
            assert_problem(shop.post(path), 405, "method_not_allowed")
            assert_problem(shop.get(path, params={"page": "1"}), 422, "invalid", "page")
            for bad in ("x", "-1", "1.0", "9" * 400, "\u0661", "1 ", ""):
                assert_problem(shop.get(path, params={"after": bad}), 422, "invalid", "after")
            for bad in ("x", "-1", "9" * 400):
                assert_problem(shop.get(path, headers={"Last-Event-ID": bad}), 422, "invalid", "Last-Event-ID")


def test_a_cursor_is_of_one_tenant_and_of_one_life_of_the_database(world: World, web: Web) -> None:
    """C38, and a restored database counts its transactions anew."""
    with closing(Follower(web, "/events/stream", key=world.key)) as follower:
        cursor = follower.opened()
    changed = ("A" if cursor[0] != "A" else "B") + cursor[1:]
    try:
        with web.client(world.key) as shop, web.client(world.birch_key) as birch:
            assert_problem(birch.get("/events/stream", params={"after": cursor}), 422, "invalid", "after")
            assert_problem(shop.get("/events/stream", params={"after": changed}), 422, "invalid", "after")
            Installation.objects.filter(id=1).update(restore_epoch=2)
            assert_problem(shop.get("/events/stream", params={"after": cursor}), 410, "cursor_gone")
            assert_problem(shop.get("/events/stream", headers={"Last-Event-ID": cursor}), 410, "cursor_gone")
    finally:
        Installation.objects.filter(id=1).update(restore_epoch=1)


def _backends(query: str) -> int:
    with psycopg.connect(database_url(), autocommit=True) as other:
        rows = other.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND query LIKE %s", [query],
        ).fetchall()
        return int(rows[0][0])


def test_many_streams_hold_one_listening_connection_and_none_of_their_own(world: World, web: Web) -> None:
    """M19: a wait holds no connection. A client that is gone is forgotten."""
    (task,) = _open(world.amber)
    with ExitStack() as stack:
        followers = [
            stack.enter_context(closing(Follower(web, path, key=world.key)))
            for _ in range(30) for path in ("/events/stream", f"/tasks/{task.id}/stream")
        ]
        for follower in followers:
            follower.opened()
        assert _backends("%") <= 16 + 4 + 1 + 1  # the pools' most, the listener, and this test's own
        tasks.cancel(world.rita, task.id, reason="Not this one")
        for follower in followers:
            follower.meets(task.id, 2)


def test_no_event_is_lost_when_every_connection_is(world: World, web: Web) -> None:
    """Nor is a request refused: connections that died while they lay in a pool are noticed before they are used."""
    with ThreadPoolExecutor(12) as pool, web.client(world.key) as shop:
        assert {answer.status_code for answer in pool.map(lambda _: shop.get("/tasks"), range(24))} == {200}
    with closing(Follower(web, "/events/stream", key=world.key)) as follower:
        follower.opened()
        with psycopg.connect(database_url(), autocommit=True) as other:
            ended = other.execute(
                "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
                " AND pid <> %s", [_own_backend()],
            ).fetchall()[0][0]
        assert ended >= 5  # the listener, a reader and several that serve requests
        _open(world.amber, 5)
        follower.sees(5)
        assert follower.seen == _everything(world.amber)
    with web.client(world.key) as shop:
        assert shop.get("/tasks").status_code == 200


def _own_backend() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])
