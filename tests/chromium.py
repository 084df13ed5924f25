"""The browser tests run when a Chromium is on the PATH, and the run says so when there is none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_left_out: list[str] = []


def find_chromium() -> str | None:
    return next((found for found in map(shutil.which, NAMES) if found), None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if find_chromium():
        return
    browser = [item for item in items if item.get_closest_marker("browser")]
    if browser:
        _left_out.extend(item.nodeid for item in browser)
        items[:] = [item for item in items if item not in browser]
        config.hook.pytest_deselected(items=browser)


@pytest.hookimpl(wrapper=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    if _left_out or not find_chromium():  # other processes of a shared run tell nobody how many they left out
        terminalreporter.write_line(
            f"No Chromium is on the PATH, so {len(_left_out) or 'the'} browser tests did not run: install chromium to"
            " run them.",
            yellow=True,
        )
    return (yield)
