"""Policies and a person's own pages in a real browser: looked at, walked by keyboard, used with and without scripts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from playwright.sync_api import expect

from approvals import absences, policies, webhooks
from approvals.models import Policy
from runtime_app import members, rows
from runtime_app.models import User
from tests.approvals.test_policies import in_force, review, rules, team
from tests.browser.conftest import DESK, PHONE, Window, axe
from tests.browser.test_pages import KEYBOARD, MARKUP, Sight, _overflow
from tests.world import PASSWORD, World

pytestmark = pytest.mark.browser

FULL = {
    "order": "in_order", "term": {"kind": "working", "hours": 16}, "hours": {"holidays": ["2026-12-25"]}, "remind": 4,
    "escalate": 2, "escalate_to": {"roles": [{"name": "approver"}]}, "password_above": {"USD": 50000},
    "bulk_up_to": {"USD": 2000}, "forbidden_above": {"USD": 5000000, "*": 900000},
}
PAGE = "/tenants/amber/policies/"


@pytest.fixture
def sights(world: World) -> list[Sight]:
    """Every page of policies, teams and a person's own, with something on it."""
    team(world, "finance", world.abel, world.sam)
    team(world, "risk", world.ada)
    asked = world.approval(world.ask(world.order()))
    world.decide(world.ada, asked, reason=MARKUP)
    in_force(world, rules(review("approval")))
    said = rules(
        review("risk", teams=["risk"]),
        review("finance", above={"USD": 100000, "JPY": 50000, "*": 100000}, people=["abel"],
               roles=[{"name": "approver", "up_to": {"USD": 900000}}]),
        **FULL,
    )
    proposed = policies.propose(world.tom, world.amber, "refund", said, why=MARKUP)
    now = rows.now()
    absences.enter(world.ada, world.amber, person=world.ada, substitute="abel", starts_at=now - timedelta(hours=1),
                   ends_at=now + timedelta(days=3), note=MARKUP[:150])
    tessa = User.objects.get(username="tessa")
    webhooks.add_endpoint(world.tom, world.amber, f"http://127.0.0.1:9/{'long-' * 40}")
    members.take_role(world.abel, world.amber, "approver")  # from now on the proposed rules cannot be met
    w = world
    return [
        Sight("a policy that somebody else proposed", tessa, PAGE),
        Sight("a policy of one's own", w.tom, PAGE),
        Sight("a policy, read only", w.ava, PAGE),
        Sight("a version", w.ava, f"{PAGE}{proposed.pk}/"),
        Sight("the editor", w.tom, f"{PAGE}new/?from={proposed.pk}"),
        Sight("the simulator", w.tom, f"{PAGE}try/?amount=1500.00&currency=USD&requester=rita&at=2026-12-24T16:00"),
        Sight("the simulator, refused", w.tom, f"{PAGE}try/?amount=x&currency=USD"),
        Sight("teams", w.tom, "/tenants/amber/teams/"),
        Sight("webhooks", w.tom, "/tenants/amber/webhooks/"),
        Sight("absences", w.tom, "/tenants/amber/absences/"),
        Sight("the start of an administrator", w.tom, "/"),
        Sight("my decisions", w.ada, "/mine/"),
        Sight("my absence", w.ada, "/mine/absences/"),
        Sight("whom I stand in for", w.abel, "/mine/absences/"),
        Sight("my preferences", w.ada, "/mine/preferences/"),
    ]


def test_every_page_in_light_at_the_desk_and_in_dark_on_the_phone(
    world: World, sights: list[Sight], window: Callable[..., Window]
) -> None:
    """Axe and the strict policy report nothing, no script of a text runs, nothing is wider than 390 pixels."""
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
    for person in {s.person for s in sights}:
        seen = window(person)
        for sight in (s for s in sights if s.person == person):
            page = seen.open(sight.path)
            page.evaluate(KEYBOARD)
            assert not page.evaluate("unreachable()"), (sight.name, page.evaluate("unreachable()"))
            # A field for a time takes a stop for each of its parts.
            times = page.locator("input[type=datetime-local], input[type=time]").count()
            for _ in range(page.evaluate("controls().length") + 12 + 7 * times):
                page.keyboard.press("Tab")
            left = page.evaluate("controls().filter(e => !met.has(e)).map(e => e.outerHTML.slice(0, 120))")
            assert not left, (sight.name, left)
            page.close()


@pytest.mark.parametrize(("size", "scripts"), [(DESK, True), (PHONE, False)], ids=["desk", "phone without scripts"])
def test_two_administrators_change_the_policy(
    world: World, window: Callable[..., Window], size: dict[str, int], scripts: bool
) -> None:
    """M38: written, enlarged, refused beside the field, looked over, proposed; agreed to by the second."""
    tessa = members.add_person(world.amber, "tessa", PASSWORD, ["tenant_admin"], full_name="Tessa Moor")
    page = window(world.tom, size, java_script_enabled=scripts).open(PAGE)
    page.get_by_role("link", name="Propose a change").click()
    page.get_by_label("Name of the review").fill("finance")
    page.get_by_label("How many people must agree").fill("3")
    page.get_by_role("button", name="Add a currency (Review 1)").first.click()
    page.get_by_label("Currency", exact=True).first.fill("USD")
    page.get_by_label("Amount", exact=True).first.fill("30.00")
    page.get_by_label("Why it changes").fill("two see more than one")
    page.get_by_label("Why it changes").press("Tab")
    page.get_by_role("button", name="Propose this version").click()
    expect(page.get_by_text("Nobody could get")).to_be_visible()
    assert page.get_by_label("Why it changes").input_value() == "two see more than one"
    page.get_by_label("How many people must agree").fill("2")
    page.get_by_label("How many people must agree").press("Enter")  # looks it over, and proposes nothing
    expect(page.get_by_role("heading", name="What would change")).to_be_visible()
    assert not Policy.objects.exists()
    page.get_by_role("button", name="Propose this version").click()
    expect(page.get_by_text("Version 2 is proposed.")).to_be_visible()
    expect(page.get_by_role("button", name="Agree")).to_have_count(0)
    second = window(tessa, size, java_script_enabled=scripts).open(PAGE)
    expect(second.get_by_text("two see more than one").first).to_be_visible()
    second.get_by_role("button", name="Agree: put version 2 in force").click()
    expect(second.get_by_text("Version 2 is in force.")).to_be_visible()
    assert Policy.objects.get().rules["reviews"][0]["quorum"] == 2


def test_a_substitute_is_named_and_the_absence_is_called_off(world: World, window: Callable[..., Window]) -> None:
    """Page 3: by hand, at the times of the person's own zone."""
    page = window(world.ada).open("/mine/absences/")
    page.get_by_label("From").fill("2027-03-28T02:30")
    page.get_by_label("Until").fill("2027-04-02T18:00")
    page.get_by_label("Substitute").select_option("abel")
    page.get_by_role("button", name="Enter this absence").click()
    expect(page.get_by_text("the clocks go forward over it")).to_be_visible()
    page.get_by_label("From").fill("2027-03-28T03:30")
    page.get_by_role("button", name="Enter this absence").click()
    expect(page.get_by_text("Abel Reed stands in")).to_be_visible()
    page.get_by_role("button", name="Call it off").click()
    expect(page.get_by_text("No absence is entered.")).to_be_visible()
