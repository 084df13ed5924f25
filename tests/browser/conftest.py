"""A real Chromium in front of the console, each person in a window of their own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Dialog, Page, sync_playwright
from pytest_django.live_server_helper import LiveServer

from runtime_app.models import User
from tests.world import World

ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 800}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = os.path.dirname(__file__)
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("there is no Chromium on the PATH, so nothing was looked at in a browser")
    # Playwright's loop lives in this thread; Django would take that for asynchronous code.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
            yield browser
            browser.close()
    finally:
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@dataclass
class Window:
    """One person's window. `problems` collects what the console, the policy or a script complained of."""

    context: BrowserContext
    url: str
    problems: list[str] = field(default_factory=list)

    def open(self, path: str) -> Page:
        page = self.context.new_page()
        page.on("console", lambda message: self._note(message.type, message.text))
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        page.on("dialog", self._refuse)
        page.goto(self.url + path, wait_until="networkidle")
        return page

    def _refuse(self, dialog: Dialog) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _note(self, kind: str, text: str) -> None:
        # A refusal's page comes with its status, which Chromium reports as a failed load: that is meant.
        meant = "Failed to load resource: the server responded with a status of 4" in text
        if kind in {"error", "warning"} and not meant:
            self.problems.append(f"{kind}: {text}")


@pytest.fixture
def server(world: World, chromium: Browser) -> Iterator[str]:
    server = LiveServer("127.0.0.1")
    yield server.url
    server.stop()


@pytest.fixture
def window(world: World, chromium: Browser, server: str) -> Iterator[Callable[..., Window]]:
    """`window(person, size, scheme)`: a window in which the person is signed in (nobody when None)."""
    opened: list[Window] = []

    def make(
        person: User | None, size: dict[str, int] = DESK, scheme: str = "light", **options: Any
    ) -> Window:
        context = chromium.new_context(viewport=size, color_scheme=scheme, timezone_id="Europe/Berlin", **options)  # type: ignore[arg-type]
        context.set_default_timeout(10_000)
        if person is not None:
            client = Client()
            client.force_login(person)
            name = settings.SESSION_COOKIE_NAME
            context.add_cookies([{"name": name, "value": client.cookies[name].value, "url": server}])
        opened.append(Window(context, server))
        return opened[-1]

    yield make
    for each in opened:
        each.context.close()


def axe(page: Page) -> list[str]:
    """What axe finds wrong. A strict policy refuses a script tag, so it is evaluated."""
    page.evaluate(AXE_SCRIPT)
    return page.evaluate(  # type: ignore[no-any-return]
        "axe.run().then(r => r.violations.map(v => `${v.id}: ${v.nodes.map(n => n.html.slice(0, 160)).join(' | ')}`))"
    )
