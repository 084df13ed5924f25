"""An approver at work with the keyboard, in a real browser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from approvals import verbs
from approvals.models import Approval, Decision, Snooze
from runtime_app import tasks
from tests.approvals.test_policies import in_force, review, rules
from tests.browser.conftest import DESK, PHONE, Window, axe
from tests.world import PASSWORD, World

pytestmark = pytest.mark.browser

POLL = "path => htmx.ajax('GET', path, {source: '%s', target: '%s'})"


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def poll(page: Page, region: str) -> None:
    """Ask now what the page asks by itself every few seconds."""
    address = page.locator(region).get_attribute("hx-get")
    page.evaluate(POLL % (region, region), address)


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["1280", "390"])
def test_ten_requests_in_a_row_are_decided_with_the_keyboard_alone(
    world: World, window: Callable[..., Window], size: dict[str, int]
) -> None:
    """Done when: from the list to each decision and on to the next, without a hand on the mouse."""
    asked = [world.approval(world.ask(world.order(), 6000 + n)) for n in range(10)]
    ada = window(world.ada, size)
    page = ada.open("/approvals/")
    press(page, "j", "Enter")
    for n, one in enumerate(asked):
        expect(page.get_by_role("heading", name=f"Refund on order {one.task.order_ref}")).to_be_visible()
        press(page, "d")
        expect(page.get_by_label("Reason")).to_be_focused()
        if n % 3 == 2:
            page.keyboard.type("no slip")
            press(page, "Tab", "Tab", "Tab", "Enter")
        else:
            press(page, "Tab", "Enter")
        expect(page.get_by_text("Your decision is recorded.")).to_be_visible()
        press(page, "n")
    expect(page.get_by_text("Nothing waits for you")).to_be_visible()
    given = Decision.objects.order_by("decided_at").values_list("verdict", flat=True)
    assert list(given) == ["approve", "approve", "reject"] * 3 + ["approve"]
    assert list(Decision.objects.order_by("decided_at").values_list("approval_id", flat=True)) == [a.id for a in asked]
    assert not ada.problems


def test_rows_are_taken_and_put_away_by_keys(world: World, window: Callable[..., Window]) -> None:
    """Console page 1: c, s, x and ? act on the row that has the focus."""
    in_force(world, rules(review(), bulk_up_to={"USD": 7000}))
    first, second, third = (world.approval(world.ask(world.order(), 6000)) for _ in range(3))
    ada = window(world.ada)
    page = ada.open("/approvals/")
    press(page, "j", "c")
    expect(page.get_by_text("You have it in hand")).to_be_visible()
    press(page, "j", "s")
    expect(page.get_by_text("out of your list until then")).to_be_visible()
    assert Approval.objects.get(pk=first.pk).claimed_by == world.ada and Snooze.objects.get().approval_id == second.id
    expect(page.locator("a.row-link")).to_have_text([third.task.order_ref])
    press(page, "j", "x")
    expect(page.get_by_role("checkbox")).to_be_checked()
    fourth = world.approval(world.ask(world.order(), 6000))
    poll(page, "#rows")
    expect(page.get_by_role("checkbox")).to_be_checked()
    expect(page.locator("a.row-link")).to_have_count(1)
    page.get_by_role("button", name="Decide the ticked ones together").click()
    page.get_by_role("button", name="Approve 1 refund").click()
    expect(page.get_by_role("heading", name="1 approved")).to_be_visible()
    press(page, "n")
    expect(page.locator("a.row-link")).to_have_text([fourth.task.order_ref])
    press(page, "?")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text("Put an approval away")
    assert not ada.problems


def test_facts_that_change_under_an_open_form_are_told_and_the_form_stays(
    world: World, window: Callable[..., Window]
) -> None:
    """Console rule 6: the banner leads to the newest question; what was typed is not taken away."""
    one = world.approval(world.ask(world.order(), 6000))
    ada = window(world.ada)
    page = ada.open(f"/approvals/{one.id}/")
    page.get_by_label("Reason").fill("half a sentence")
    verbs.comment(world.abel, one.id, text="look twice")
    poll(page, "#live")
    expect(page.get_by_text("Something was added meanwhile")).to_be_visible()
    tasks.amend(world.rita, one.task_id, revision=one.task.revision, amount_minor=6600, reason=None)
    newest = world.approval(one.task)
    poll(page, "#live")
    expect(page.get_by_role("heading", name="The facts have changed")).to_be_visible()
    expect(page.get_by_label("Reason")).to_have_value("half a sentence")
    page.get_by_role("link", name="Open the newest question").click()
    expect(page.get_by_role("heading", name="What changed since it was asked before")).to_be_visible()
    assert str(newest.id) in page.url and not ada.problems


def test_the_password_is_given_beside_the_decision_and_the_reason_stays(
    world: World, window: Callable[..., Window]
) -> None:
    """S7: a wrong one first; on the phone, with Enter in the field."""
    in_force(world, rules(review(), password_above={"USD": 5000}))
    one = world.approval(world.ask(world.order(), 6000))
    ada = window(world.ada, PHONE)
    page = ada.open(f"/approvals/{one.id}/")
    page.get_by_label("Reason").fill("slip seen")
    page.get_by_label("Your password, once more").fill("not-hers")
    press(page, "Enter")
    expect(page.get_by_text("This is not your password")).to_be_visible()
    expect(page.get_by_label("Reason")).to_have_value("slip seen")
    expect(page.get_by_label("Your password, once more")).to_have_value("")
    page.get_by_label("Your password, once more").fill(PASSWORD)
    press(page, "Enter")
    expect(page.get_by_text("Your decision is recorded.")).to_be_visible()
    assert Decision.objects.get().reason == "slip seen" and not ada.problems


def test_an_approver_finds_the_way_back_to_the_same_filters(world: World, window: Callable[..., Window]) -> None:
    """Lesson 24: opened, looked at, and back by the browser and by the page's own way."""
    order = world.approval(world.ask(world.order(), 6000)).task.order_ref
    world.approval(world.ask(world.order(), 9000))
    page = window(world.ada).open("/approvals/")
    page.get_by_text("Filter", exact=True).click()
    page.get_by_label("Currency").select_option("USD")
    page.get_by_label("To amount").fill("70")
    page.get_by_role("button", name="Show these").click()
    for by_browser in (True, False):
        page.get_by_role("link", name=order).click()
        expect(page.get_by_role("heading", name=f"Refund on order {order}")).to_be_visible()
        if by_browser:
            page.go_back()
        else:
            press(page, "u")
        expect(page.locator("a.row-link")).to_have_text([order])
        expect(page.get_by_label("To amount")).to_have_value("70")


def test_the_pages_are_sound_in_every_state(world: World, window: Callable[..., Window]) -> None:
    """Axe, light and dark, at the desk and on the phone: held, ticked, refused, together, stuck."""
    in_force(world, rules(review(), bulk_up_to={"USD": 7000}, password_above={"USD": 8000}))
    small, held, large = (world.approval(world.ask(world.order(), amount)) for amount in (6000, 6100, 9000))
    verbs.claim(world.ada, held.id)
    verbs.comment(world.abel, large.id, text="<b>look</b> twice")
    wrong: list[object] = []
    for size, scheme in ((DESK, "light"), (PHONE, "dark")):
        ada = window(world.ada, size, scheme)
        page = ada.open("/approvals/?show=mine")
        wrong += axe(page)
        page.goto(f"{ada.url}/approvals/?currency=USD&least=x")
        wrong += axe(page)
        page.goto(f"{ada.url}/approvals/")
        page.get_by_role("checkbox").check()
        page.get_by_role("button", name="Decide the ticked ones together").click()
        wrong += axe(page)
        page.get_by_role("button", name="Reject it").click()
        expect(page.get_by_text("Say why you reject them")).to_be_visible()
        wrong += axe(page)
        page.goto(f"{ada.url}/approvals/{large.id}/")
        page.get_by_role("button", name="Approve: refund").click()
        expect(page.get_by_text("give your password once more")).to_be_visible()
        page.get_by_text("Hand it over…").click()
        wrong += [*axe(page), *ada.problems]
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    assert not wrong and small.decisions.count() == 0
