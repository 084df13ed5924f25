"""Lines that tests have to tell, printed together at the end of the run, from all processes that share it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

_lines: list[str] = []


@pytest.fixture(scope="session")
def print_line() -> Callable[[str], None]:
    """Have a line printed at the end of the run."""
    return _lines.append


def pytest_sessionfinish(session: pytest.Session) -> None:
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["printed"] = list(_lines)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    _lines.extend(getattr(node, "workeroutput", {}).get("printed", ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _lines:
        terminalreporter.section("figures")
        for line in _lines:
            terminalreporter.write_line(line)
