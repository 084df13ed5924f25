"""The reconciliation pages as they are seen and worked: by axe, by keyboard, on the phone, and without scripts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings
from playwright.sync_api import expect

from runtime_app.desk import verbs
from runtime_app.models import Account, Case
from runtime_app.statements import reach
from tests.browser.conftest import DESK, PHONE, Window, axe
from tests.browser.test_pages import KEYBOARD, MARKUP, Sight, _overflow
from tests.console.rows import a_case
from tests.console.test_days import bank, file, yesterday
from tests.desk.conftest import Desk
from tests.statements.books import Books
from tests.world import World

pytestmark = pytest.mark.browser
UNFOLD = "document.querySelectorAll('main details').forEach(fold => { fold.open = true; })"


@pytest.fixture
def desk(world: World) -> Desk:
    return Desk(world)


@pytest.fixture
def books(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Books]:
    monkeypatch.setattr(settings, "TIMING", world.timing)
    reach.provider.cache_clear()
    yield Books(world)
    reach.provider.cache_clear()


@pytest.fixture
def sights(world: World, desk: Desk, books: Books) -> list[Sight]:
    """Every page of reconciliation in the states worth looking at, with markup where people and providers write."""
    operation, lost = books.refund(2500), books.in_doubt(900)
    day_case = books.take(books.line(operation), books.line(None, -2500, payment_ref="pi_<b>x</b>"))
    missing = Case.objects.get(class_name="MISSING_HERE")
    unavailable = a_case(world, "LOOKUP_UNAVAILABLE", lost, details={"refunds": [
        {"ref": f"re_{n}{MARKUP[:20]}", "payment_ref": "pi_other", "amount_minor": 900 + n, "currency": "USD",
         "status": "succeeded"} for n in range(6)]})
    desk.do(verbs.comment, desk.olga, unavailable, text=MARKUP)
    Case.objects.filter(pk=missing.pk).update(owner=world.olga)
    closed = a_case(world, "DISPUTED", payment_ref=f"pi_{MARKUP}", order_ref="x" * 190, amount_minor=10**15,
                    currency="USD")
    desk.do(verbs.close, desk.olga, closed, outcome="dispute_lost", reason=MARKUP)
    a_case(world, "CURRENCY", payment_ref="p" * 190, order_ref="ORD", amount_minor=1, currency="JPY")
    account, o, day = Account.objects.get(tenant=world.amber, ref="stripe"), world.olga, day_case.day
    assert day is not None
    return [
        Sight("outcomes", o, "/reconciliation/"),
        Sight("outcomes, nothing found", o, f"/reconciliation/?q={MARKUP[:40]}"),
        Sight("cases", o, "/reconciliation/?show=cases"),
        Sight("closed cases", o, "/reconciliation/?show=cases&state=closed"),
        Sight("cases, none like this", o, "/reconciliation/?show=cases&severity=normal&owner=mine"),
        Sight("an operation in doubt", o, f"/reconciliation/{lost.id}/"),
        Sight("a case that can be worked", o, f"/reconciliation/cases/{unavailable.id}/"),
        Sight("a case of a statement", o, f"/reconciliation/cases/{missing.id}/"),
        Sight("a closed case", o, f"/reconciliation/cases/{closed.id}/"),
        Sight("a case to look at only", world.sam, f"/reconciliation/cases/{unavailable.id}/"),
        Sight("a task with a case", o, f"/tasks/{lost.task_id}/"),
        Sight("days", o, "/reconciliation/days/"), Sight("a day", o, f"/reconciliation/days/{day.pk}/"),
        Sight("accounts", world.tom, "/tenants/amber/accounts/"),
        Sight("an account", world.tom, f"/tenants/amber/accounts/{account.pk}/"),
        Sight("a new bank account", world.tom, "/tenants/amber/accounts/new/?provider=bank"),
    ]  # fmt: skip


def test_every_page_in_light_at_the_desk_and_in_dark_on_the_phone(
    world: World, sights: list[Sight], window: Callable[..., Window]
) -> None:
    """Axe reports nothing, the policy nothing, no script of a text runs, nothing is wider than the screen."""
    wrong: list[object] = []
    for size, scheme in ((DESK, "light"), (PHONE, "dark")):
        for person in {s.person for s in sights}:
            seen = window(person, size, scheme)
            for sight in (s for s in sights if s.person == person):
                page = seen.open(sight.path)
                page.evaluate(UNFOLD)
                found = [*axe(page), *_overflow(page, size["width"]), *seen.problems]
                wrong += [(sight.name, scheme, size["width"], found)] if found else []
                seen.problems.clear()
                page.close()
            seen.context.close()
    assert not wrong


def test_everything_that_can_be_clicked_is_reached_by_keyboard(
    world: World, sights: list[Sight], window: Callable[..., Window]
) -> None:
    """Tab walks to every control there is, the folds and what they hold included."""
    for person in {s.person for s in sights}:
        seen = window(person)
        for sight in (s for s in sights if s.person == person):
            page = seen.open(sight.path)
            page.evaluate(UNFOLD)
            page.evaluate(KEYBOARD)
            assert not page.evaluate("unreachable()"), (sight.name, page.evaluate("unreachable()"))
            page.evaluate("document.activeElement.blur()")
            for _ in range(page.evaluate("controls().length") + 12):
                page.keyboard.press("Tab")
            left = page.evaluate(
                "controls().filter(e => !met.has(e) && !(e.type === 'radio' && e.form.elements[e.name].length))"
                ".map(e => e.outerHTML.slice(0, 120))")
            assert not left, (sight.name, left)
            page.close()


def test_two_people_end_it_without_scripts_and_the_loser_of_a_race_is_told(
    desk: Desk, window: Callable[..., Window]
) -> None:
    """M23, console rule 5: from the queue to the case by links and plain forms, on the phone."""
    _order, task, case = desk.absent()
    olga = window(desk.olga, PHONE, java_script_enabled=False).open("/reconciliation/?show=cases")
    olga.get_by_role("link", name="Absent for good").last.click()
    olga.get_by_text("Declare not executed").click()
    olga.get_by_label("The provider has said in writing").check()
    form = olga.locator("form[action$='/declare/']")
    form.get_by_label("Why").fill("They wrote so.")
    stale = window(desk.otto, PHONE, java_script_enabled=False).open(f"/reconciliation/cases/{case.id}/")
    form.get_by_role("button", name="Declare that it was never executed").click()
    expect(olga.get_by_text("It takes effect when a second person says the same")).to_be_visible()

    stale.get_by_text("Declare not executed").click()
    stale.get_by_label("The provider has said in writing").check()
    first = stale.locator("form[action$='/declare/']")
    first.get_by_label("Why").fill("I think so too.")
    first.get_by_role("button", name="Declare that it was never executed").click()
    expect(stale.get_by_role("heading", name="It changed while you were looking")).to_be_visible()
    expect(stale.get_by_text("Olga Brook declared that it was never executed")).to_be_visible()
    stale.get_by_role("link", name="Look at it again").click()
    expect(stale.get_by_role("heading", name="Olga Brook has declared; a second person is needed")).to_be_visible()
    stale.get_by_text("Declare not executed").click()
    second = stale.locator("form[action$='/declare/']")
    second.get_by_label("Why").fill("I read the letter.")
    second.get_by_role("button", name="Declare the same, and do it now").click()
    expect(stale.get_by_text("Both have said so, and it is done")).to_be_visible()
    desk.world.finish(task)
    assert task.status == "failed"


def test_the_evidence_is_taken_as_a_file_and_the_page_stays_usable(desk: Desk, window: Callable[..., Window]) -> None:
    """M40: twice in a row, because a download leaves the page where it is."""
    case = a_case(desk.world, "RETURNED", payment_ref="pi_1", order_ref="ORD-1")
    seen = window(desk.olga)
    page = seen.open(f"/reconciliation/cases/{case.id}/")
    for _ in range(2):
        with page.expect_download() as started:
            page.get_by_role("button", name="Export the evidence").click()
        said = json.loads(Path(started.value.path()).read_text())
        assert said["case"]["id"] == str(case.id) and len(said["sha256"]) == 64
    assert desk.entries(case) == ["exported", "exported"] and not seen.problems


def test_a_file_is_brought_and_its_day_is_closed(
    world: World, books: Books, window: Callable[..., Window], tmp_path: Path
) -> None:
    """money.md 3.7: refused beside the field first, then taken, then closed by name."""
    day = yesterday(bank(world))
    good, bad = tmp_path / "good.xml", tmp_path / "bad.xml"
    good.write_bytes(file(day))
    bad.write_text("this is not a statement")
    page = window(world.olga).open("/reconciliation/days/")
    page.get_by_text("Bring a statement file…").click()
    page.get_by_label("Statement file").set_input_files(bad)
    page.get_by_role("button", name="Take this statement").click()
    expect(page.locator("#id_file_error")).to_contain_text("not XML")
    page.get_by_label("Statement file").set_input_files(good)
    page.get_by_role("button", name="Take this statement").click()
    expect(page.get_by_text("Taken: 0 lines")).to_be_visible()
    page.get_by_role("button", name="Close ").click()
    expect(page.get_by_text("The day is closed.")).to_be_visible()


def test_the_queue_is_walked_by_keys_and_renews_itself(world: World, window: Callable[..., Window]) -> None:
    """Console page 1 and rule 6: j, Enter, and a poll that brings the new case."""
    a_case(world, "RETURNED", payment_ref="pi_1", order_ref="ORD-1")
    page = window(world.olga).open("/reconciliation/?show=cases")
    a_case(world, "DISPUTED", payment_ref="pi_2", order_ref="ORD-2")
    page.evaluate("htmx.ajax('GET', location.href, {source: '#rows', target: '#rows'})")
    expect(page.locator("a.row-link")).to_have_count(2)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Money came back")).to_be_visible()
