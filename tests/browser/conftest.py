"""A real Chromium in front of the console, each person in a window of their own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Dialog, Page, sync_playwright

from runtime_app.models import User
from tests.api.web_process import Web, running_web
from tests.chromium import find_chromium
from tests.sandbox_process import SandboxProcess
from tests.world import World

ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 800}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    # Playwright's loop lives in this thread; Django would take that for asynchronous code, and other tests have loops.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=find_chromium(), args=list(ARGUMENTS))
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
        page.goto(self.url + path)
        return page

    def _refuse(self, dialog: Dialog) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _note(self, kind: str, text: str) -> None:
        # A refusal's page comes with its status, which Chromium reports as a failed load: that is meant.
        meant = "Failed to load resource: the server responded with a status of 4" in text
        if kind in {"error", "warning"} and not meant:
            self.problems.append(f"{kind}: {text}")


@pytest.fixture(scope="session")
def web(django_db_setup: None, sandbox: SandboxProcess) -> Iterator[Web]:
    """The real web process, with streams, on the test database."""
    with running_web() as started:
        yield started


@pytest.fixture
def window(world: World, chromium: Browser, web: Web) -> Iterator[Callable[..., Window]]:
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
            context.add_cookies([{"name": name, "value": client.cookies[name].value, "url": web.url}])
        opened.append(Window(context, web.url))
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
