"""Event streams, read from a real web process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.api.web_process import Follower, Web, running_web
from tests.world import World


@pytest.fixture(scope="module")
def web(django_db_setup: None) -> Iterator[Web]:
    with running_web() as started:
        yield started


def test_a_task_is_followed_from_its_first_event_on_and_as_it_happens(world: World, web: Web) -> None:
    """M35: the browser reads a stream whose id is the event's number."""
    task = world.ask(world.order())
    with closing(Follower(web, f"/tasks/{task.id}/stream", key=world.key)) as follower:
        assert follower.status == 200
        follower.until(lambda: follower.seen)
        world.approval(task)
        follower.until(lambda: len(follower.seen) == len(world.events(task)))
    assert [f.data["type"] for f in follower.frames] == world.events(task)
    assert [f.id for f in follower.frames] == [str(n) for n in range(1, len(follower.frames) + 1)]
