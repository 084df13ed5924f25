"""People at work in a real browser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from approvals.models import Decision
from runtime_app.models import Task
from tests.browser.conftest import PHONE, Window
from tests.world import PASSWORD, World

pytestmark = pytest.mark.browser


def test_a_refund_from_the_request_to_the_truth(world: World, window: Callable[..., Window]) -> None:
    """M38, M39: Rita asks at the form, Ada signs in and approves, the story tells the end; one refund was made."""
    order = world.order(12_000)
    rita = window(world.rita)
    page = rita.open("/tasks/new/")
    page.get_by_label("Order").fill(order)
    page.get_by_role("button", name="Read the order").click()
    expect(page.get_by_text("120.00")).to_have_count(2)
    page.get_by_label("Amount").fill("60.00")
    page.get_by_label("Reason").fill("one item came back")
    page.get_by_role("button", name="Ask for this refund").click()
    expect(page.get_by_text(f"Rita Moss asked for a refund of 60.00 USD on order {order}.")).to_be_visible()
    asked = world.approval(Task.objects.get())

    ada = window(None)
    decision = ada.open(f"/approvals/{asked.id}/")
    decision.get_by_label("User name").or_(decision.get_by_label("Username")).fill("ada")
    decision.get_by_label("Password").fill(PASSWORD)
    decision.get_by_role("button", name="Sign in").click()
    expect(decision.get_by_role("heading", name=f"Refund on order {order}")).to_be_visible()
    decision.get_by_label("Reason").fill("slip seen")
    decision.get_by_role("button", name="Approve: refund 60.00 USD").click()
    expect(decision.get_by_text("Your decision is recorded.")).to_be_visible()
    world.finish(asked.task)

    expect(page.get_by_text("It is completed, and proved.")).to_be_visible()  # the open page tells it by itself
    expect(page.locator(".title-row").get_by_text("Completed")).to_be_visible()
    expect(page.get_by_text("The task has moved on")).to_have_count(0)
    assert [r["amount_minor"] for r in world.effects(order)] == [6000]
    decision.get_by_role("button", name="Sign out").click()
    expect(decision.get_by_role("heading", name="Sign in")).to_be_visible()
    assert not [*rita.problems, *ada.problems]


def test_a_page_on_which_something_was_begun_is_not_loaded_anew(
    world: World, window: Callable[..., Window]
) -> None:
    """Console rule 6: nothing is taken from under the hand; the page says instead that it is from before."""
    task = world.ask(world.order(), 6000)
    asked = world.approval(task)
    rita = window(world.rita)
    rita.context.clock.install()
    page = rita.open(f"/tasks/{task.id}/")
    page.get_by_text("Cancel the request…").click()
    page.locator("#cancel textarea").fill("found it")
    world.decide(world.ada, asked)
    world.finish(task)
    expect(page.get_by_text("The task has moved on")).to_be_visible()
    page.clock.fast_forward(10_000)  # longer than it waits before it loads itself anew
    expect(page.locator("#cancel textarea")).to_have_value("found it")


def test_a_double_click_is_one_decision(world: World, window: Callable[..., Window]) -> None:
    """Lessons 1 and 2: one decision, and the page says that it was recorded, not an error."""
    asked = world.approval(world.ask(world.order(), 6000))
    page = window(world.ada).open(f"/approvals/{asked.id}/")
    page.get_by_role("button", name="Approve: refund 60.00 USD").dblclick()
    expect(page.get_by_text("Your decision is recorded.")).to_be_visible()
    assert Decision.objects.filter(approval=asked).count() == 1


def test_two_windows_of_one_form_and_going_back_decide_once(world: World, window: Callable[..., Window]) -> None:
    """Lesson 37, rule 10: back shows the page anew, without a form that could be sent again."""
    asked = world.approval(world.ask(world.order(), 6000))
    ada = window(world.ada)
    first, second = ada.open(f"/approvals/{asked.id}/"), ada.open(f"/approvals/{asked.id}/")
    first.get_by_role("button", name="Approve: refund").click()
    expect(first.get_by_text("You have decided: Approved")).to_be_visible()
    second.get_by_label("Reason").fill("changed my mind")
    second.get_by_role("button", name="Reject").click()
    expect(second.get_by_role("heading", name="Already decided by you")).to_be_visible()
    first.go_back()
    expect(first.get_by_text("You have decided: Approved")).to_be_visible()
    assert [d.verdict for d in asked.decisions.all()] == ["approve"]


def test_the_loser_reads_who_was_first(world: World, window: Callable[..., Window]) -> None:
    """C14: on the phone, from a page that was open before."""
    asked = world.approval(world.ask(world.order(), 6000))
    abel = window(world.abel, PHONE).open(f"/approvals/{asked.id}/")
    world.decide(world.ada, asked)
    abel.get_by_role("link", name="Go to the decision").click()
    abel.get_by_role("button", name="Approve: refund").click()
    expect(abel.get_by_role("heading", name="Ada Stone decided this first")).to_be_visible()
    expect(abel.get_by_text("Yours was not recorded")).to_be_visible()


def test_rows_are_walked_and_found_by_keys(world: World, window: Callable[..., Window]) -> None:
    """Console page 1: j, k, Enter, / and ?."""
    orders = [world.ask(world.order(), 100).order_ref for _ in range(3)]
    page = window(world.sam).open("/tasks/")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator("a.row-link:focus")).to_have_text(orders[1])
    page.keyboard.press("k")
    expect(page.locator("a.row-link:focus")).to_have_text(orders[2])
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type(orders[0])
    page.keyboard.press("Enter")
    expect(page.locator("a.row-link")).to_have_text([orders[0]])
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=f"Refund on order {orders[0]}")).to_be_visible()


def test_a_list_renews_itself_and_never_under_the_hand(world: World, window: Callable[..., Window]) -> None:
    """Lesson 17, rule 6: a poll brings the new row; while something is marked or opened nothing is swapped."""
    first = world.ask(world.order(), 100)
    page = window(world.sam).open("/tasks/")
    poll = "htmx.trigger('#rows', 'poll'); htmx.ajax('GET', location.href, {source: '#rows', target: '#rows'})"
    second = world.ask(world.order(), 100)
    page.evaluate(poll)
    expect(page.locator("a.row-link")).to_have_text([second.order_ref, first.order_ref])
    page.locator("a.row-link").first.focus()
    world.finish(first, second)
    page.evaluate(poll)
    expect(page.locator(".state-done")).to_have_count(2)
    expect(page.locator("a.row-link:focus")).to_have_text(second.order_ref)
    page.evaluate("getSelection().selectAllChildren(document.querySelector('a.row-link'))")
    third = world.ask(world.order(), 100)
    page.evaluate(poll)
    page.evaluate("getSelection().empty()")
    expect(page.locator("a.row-link")).to_have_count(2)
    page.evaluate(poll)
    expect(page.locator("a.row-link").first).to_have_text(third.order_ref)
