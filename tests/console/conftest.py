"""People at their browsers, without a browser: Django's client with CSRF checked and the forms of the page read."""

from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest
from django.test import Client

from runtime_app.models import User
from tests.world import World


class Inputs(HTMLParser):
    """The hidden inputs of each form of a page, by the form's action."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.forms: dict[str, dict[str, str]] = {}
        self._open: dict[str, str] | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attrs}
        if tag == "form" and said.get("method") == "post":
            self._open = self.forms.setdefault(said.get("action", ""), {})
        elif tag == "input" and self._open is not None and said.get("type") == "hidden":
            self._open[said["name"]] = said.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._open = None


class Visitor:
    """One signed-in person."""

    def __init__(self, person: User | None) -> None:
        self.client = Client(enforce_csrf_checks=True)
        if person is not None:
            self.client.force_login(person)

    def get(self, path: str, **headers: str) -> Any:
        return self.client.get(path, headers=headers)

    def text(self, path: str, status: int = 200) -> str:
        answer = self.client.get(path)
        assert answer.status_code == status, (path, answer.status_code)
        return str(answer.content.decode())

    def form(self, path: str, action: str | None = None) -> dict[str, str]:
        """The hidden inputs of the page's form with that action (its own address when not said)."""
        return Inputs(self.text(path)).forms[action or path]

    def send(self, action: str, fields: dict[str, Any]) -> Any:
        return self.client.post(action, fields)


@pytest.fixture
def visit(world: World) -> Callable[[User | None], Visitor]:
    return Visitor
