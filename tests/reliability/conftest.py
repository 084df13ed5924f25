"""Rooms for the matrices, and the lines they print at the end of the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from runtime_app.trial.cluster import running_cluster
from tests.reliability.room import Rooms, running_room

_lines: list[str] = []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "reliability" in item.path.parts:
            item.add_marker(pytest.mark.processes)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _lines:
        terminalreporter.section("reliability")
        for line in _lines:
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def print_line() -> Callable[[str], None]:
    """Have a line printed at the end of the run."""
    return _lines.append


@pytest.fixture(scope="session")
def rooms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rooms]:
    """Two rooms beside each other, each with a database, a sandbox and workers of its own."""
    folder = tmp_path_factory.mktemp("rooms")
    with running_cluster() as cluster, running_room(cluster, folder, 1) as one, running_room(cluster, folder, 2) as two:
        both = Rooms([one, two])
        yield both
        both.close()
