"""Every page as it is seen: no complaint by axe or by the policy, nothing over the edge, everything by keyboard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote

import pytest
from playwright.sync_api import Page

from approvals import verbs
from runtime_app import tasks
from runtime_app.models import User
from tests.browser.conftest import DESK, PHONE, Window, axe
from tests.world import World

pytestmark = pytest.mark.browser

MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script>\"'>{{ 7*7 }}"

# Of radio buttons that belong together one stands for all in the order of Tab; the arrows walk among them.
KEYBOARD = """
const clickable = "[onclick], [role=button], a, button, summary, input, select, textarea";
const shown = e => e.checkVisibility() && e.type !== "hidden";
window.controls = () => [...document.querySelectorAll(clickable)].filter(shown);
window.unreachable = () => controls().filter(e => e.tabIndex < 0).map(e => e.outerHTML.slice(0, 120));
window.met = new Set();
document.addEventListener("focusin", e => met.add(e.target));
"""


@dataclass(frozen=True, slots=True)
class Sight:
    name: str
    person: User | None
    path: str


@pytest.fixture
def sights(world: World) -> list[Sight]:
    """Every page, in every state worth looking at, with markup in each text that people write."""
    order = world.order(12_000)
    done = world.ask(order, 6000, reason=MARKUP)
    asked = world.approval(done)
    world.sandbox.fault("F4", times=1, match={"payment_ref": f"pi_{order}"})
    world.decide(world.ada, asked, reason=MARKUP)
    world.finish(done)
    lacking = world.ask(world.order(), None, currency=None)
    world.until(lambda: world.events(lacking)[-1] == "task.waiting_input")
    other = world.order(20_000)
    pending = world.ask(other, 700)
    world.sandbox.fault("F21", times=1, match={"payment_ref": f"pi_{other}"}, seconds=3600, then="succeeded")
    world.until(lambda: "operation.pending" in world.events(pending))
    amended = world.ask(world.order(), 6000, reason=MARKUP)
    before = world.approval(amended)
    tasks.amend(world.rita, amended.id, revision=before.task.revision, amount_minor=7000, reason=None)
    world.clock(hours=52)
    again = world.approval(amended)
    verbs.comment(world.abel, again.id, text=MARKUP)
    held = world.approval(world.ask(world.order(), 6100, reason=MARKUP))
    verbs.hand_over(world.abel, held.id, to="ada", text=MARKUP)
    verbs.save_filter(world.ada, world.amber.id, name=MARKUP[:60], query=f"show=open&q={quote(MARKUP)}")
    w, operation = world, world.operation(pending)
    return [
        Sight("sign-in", None, "/accounts/login/"),
        *[Sight(f"start of {p.username}", p, "/") for p in (w.rita, w.ada, w.sam, w.olga)],
        Sight("tasks", w.sam, "/tasks/"),
        Sight("tasks, nothing found", w.sam, f"/tasks/?q={MARKUP[:40]}"),
        Sight("tasks, none in this state", w.sam, "/tasks/?status=rejected"),
        Sight("a task that is done", w.olga, f"/tasks/{done.id}/"),
        Sight("a task that lacks input", w.rita, f"/tasks/{lacking.id}/"),
        Sight("a task whose money has not landed", w.sam, f"/tasks/{pending.id}/"),
        Sight("a task that waits for an approver", w.rita, f"/tasks/{amended.id}/"),
        Sight("asking, first step", w.rita, "/tasks/new/"),
        Sight("asking, no such order", w.rita, "/tasks/new/?order_ref=NOWHERE"),
        Sight("asking, second step", w.rita, f"/tasks/new/?order_ref={order}"),
        Sight("approvals", w.ada, "/approvals/"),
        Sight("approvals, closed", w.ada, "/approvals/?show=decided"),
        Sight("approvals, in one's own hand", w.ada, "/approvals/?show=mine"),
        Sight("approvals, filtered wrongly", w.ada, f"/approvals/?show=open&q={quote(MARKUP)}&least=x&before=y"),
        Sight("approvals, of one who decides nothing", w.ava, "/approvals/"),
        Sight("a decision in one's own hand", w.ada, f"/approvals/{held.id}/?from=show%3Dmine"),
        Sight("a decision", w.ada, f"/approvals/{again.id}/"),
        Sight("a decision that was taken", w.ada, f"/approvals/{asked.id}/"),
        Sight("a decision that was superseded", w.abel, f"/approvals/{before.id}/"),
        Sight("a decision that is not one's own", w.sam, f"/approvals/{again.id}/"),
        Sight("reconciliation", w.olga, "/reconciliation/"),
        Sight("an operation", w.olga, f"/reconciliation/{operation.id}/"),
        Sight("not found", w.rita, "/tasks/00000000-0000-0000-0000-000000000000/"),
        Sight("forbidden", w.rita, "/reconciliation/"),
        Sight("unreadable", w.rita, "/tasks/?cursor=x"),
    ]


def _overflow(page: Page, width: int) -> list[str]:
    """What reaches over the right edge, when the page can be moved sideways."""
    if page.evaluate("document.documentElement.scrollWidth") <= width:
        return []
    return page.evaluate(
        """width => [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > width + 1)
             .slice(0, 5).map(e => e.outerHTML.slice(0, 120))""",
        width,
    ) or ["something"]


def test_every_page_in_light_at_the_desk_and_in_dark_on_the_phone(
    world: World, sights: list[Sight], window: Callable[..., Window]
) -> None:
    """Axe reports nothing, the strict policy nothing, no script of a text runs, nothing is wider than 390 pixels."""
    wrong: list[object] = []
    for size, scheme in ((DESK, "light"), (PHONE, "dark")):
        for person in {s.person for s in sights}:
            seen = window(person, size, scheme)
            for sight in (s for s in sights if s.person == person):
                page = seen.open(sight.path)
                found = [*axe(page), *_overflow(page, size["width"]), *seen.problems]
                wrong += [(sight.name, scheme, size["width"], found)] if found else []
                seen.problems.clear()
                page.close()
            seen.context.close()
    assert not wrong


def test_everything_that_can_be_clicked_is_reached_by_keyboard(
    world: World, sights: list[Sight], window: Callable[..., Window]
) -> None:
    """Axe does not tell of these: what reacts to a click takes the focus, and Tab walks to every control there is."""
    for person in {s.person for s in sights}:
        seen = window(person)
        for sight in (s for s in sights if s.person == person):
            page = seen.open(sight.path)
            page.evaluate(KEYBOARD)
            assert not page.evaluate("unreachable()"), (sight.name, page.evaluate("unreachable()"))
            there = page.evaluate("controls().length")
            for _ in range(there + 12):
                page.keyboard.press("Tab")
            left = page.evaluate("controls().filter(e => !met.has(e)).map(e => e.outerHTML.slice(0, 120))")
            assert not left, (sight.name, left)
            page.close()


def test_the_page_works_and_reads_right_without_scripts(world: World, window: Callable[..., Window]) -> None:
    """Console rule 5: navigation, decision and search by plain forms and links."""
    asked = world.approval(world.ask(world.order(), 6000))
    page = window(world.ada, PHONE, java_script_enabled=False).open("/")
    page.get_by_role("button", name="Navigation").click()
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Approvals").click()
    page.get_by_role("link", name=asked.task.order_ref).click()
    page.get_by_role("link", name="Go to the decision").click()
    page.get_by_role("button", name="Approve: refund 60.00 USD").click()
    assert "Your decision is recorded." in page.inner_text("main")
    assert asked.decisions.count() == 1
