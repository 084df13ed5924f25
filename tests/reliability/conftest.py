"""Rooms for the matrices."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime_app.trial.cluster import Cluster, running_cluster
from tests.reliability.room import QUICK, Room, Rooms, running_room


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "reliability" in item.path.parts and "world" not in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.processes)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A PostgreSQL and a Redis for all rooms, which nobody restarts."""
    with running_cluster() as started:
        yield started


@pytest.fixture(scope="session")
def rooms(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rooms]:
    """Two rooms beside each other, each with a database, a sandbox and workers of its own."""
    with _two_rooms(cluster, tmp_path_factory.mktemp("rooms"), 1) as both:
        yield both
        for room in both.all:
            room.check()


@pytest.fixture(scope="module")
def rooms_to_spoil(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rooms]:
    """Two rooms in which things may end wrong."""
    with _two_rooms(cluster, tmp_path_factory.mktemp("spoiled"), 3) as both:
        yield both


@pytest.fixture
def quick_room(cluster: Cluster, tmp_path: Path) -> Iterator[Room]:
    """A room for real workers on the real clock, everything in it held against the invariants at the end."""
    with running_room(cluster, tmp_path, 5, threshold=5000, **QUICK) as room:
        yield room
        room.check()


@contextlib.contextmanager
def _two_rooms(cluster: Cluster, folder: Path, number: int) -> Iterator[Rooms]:
    with running_room(cluster, folder, number) as one, running_room(cluster, folder, number + 1) as two:
        both = Rooms([one, two])
        yield both
        both.close()
