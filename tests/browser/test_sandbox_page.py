"""The sandbox's page in a real browser: pressed by keyboard, read on a phone, light and dark."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.conftest import DESK, PHONE, axe
from tests.sandbox_process import running_sandbox

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(("size", "scheme"), [(DESK, "light"), (PHONE, "dark"), (PHONE, "light"), (DESK, "dark")])
def test_a_fault_is_armed_and_cleared_by_keyboard(
    chromium: Browser, tmp_path: Path, size: dict[str, int], scheme: str
) -> None:
    """M40, F4: the page works at 390 px and without a script, and axe finds nothing."""
    with running_sandbox(tmp_path) as sandbox:
        sandbox.order("ORD-1")
        sandbox.fault("F12")
        context = chromium.new_context(viewport=size, color_scheme=scheme)  # type: ignore[arg-type]
        page, problems = context.new_page(), list[str]()
        page.on("console", lambda message: problems.append(message.text))
        page.goto(sandbox.url + "/_sandbox/")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.locator("summary", has_text="F4").first.focus()
        page.keyboard.press("Enter")
        assert axe(page) == [] and problems == []
        page.get_by_label("Only for this payment_ref").locator("visible=true").fill("pi_ORD-1")
        page.keyboard.press("Enter")
        page.wait_for_url("**/page#armed")
        assert [a["match"] for a in sandbox.control("GET", "").json()["armed"]] == [{}, {"payment_ref": "pi_ORD-1"}]
        page.get_by_role("button", name="Clear F12").press("Enter")
        page.wait_for_function("!document.body.innerText.includes('F12\\ncreate')")
        assert [a["fault"] for a in sandbox.control("GET", "").json()["armed"]] == ["F4"]
        assert problems == []
        context.close()
