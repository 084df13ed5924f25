"""What the pages say once a case about a refund is closed: true, and calling nobody who has nothing left to do."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape

import pytest

from runtime_app.desk import verbs
from runtime_app.models import User
from tests.console.conftest import Visitor
from tests.console.rows import a_case
from tests.desk.conftest import Desk
from tests.desk.test_follow_up import came_back
from tests.world import World

Visit = Callable[[User | None], Visitor]


@pytest.fixture
def desk(world: World) -> Desk:
    return Desk(world)


def read(visitor: Visitor, path: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", visitor.text(path))).split())


def test_money_that_came_back_is_not_told_as_confirmed_once_its_case_is_closed(desk: Desk, visit: Visit) -> None:
    """C06, row 24: the task stays completed, and its page says where the money is."""
    _order, task, case = came_back(desk, desk.world)
    sam, page = visit(desk.world.sam), f"/tasks/{task.id}/"
    before = read(sam, page)
    assert "This needs a person" in before and "Who must act An operator" in before
    desk.do(verbs.close, desk.olga, case, outcome="paid_otherwise", reason="In cash.")
    after = read(sam, page)
    assert "the money came back afterwards: the customer does not have it" in after
    assert "The provider has confirmed the refund" not in after and "Who must act" not in after


def test_a_new_refund_that_makes_good_an_earlier_one_says_so_at_any_amount(desk: Desk, visit: Visit) -> None:
    """M15: it is not over any threshold, and nobody is told that it were; it leads to the earlier one."""
    _order, first, case = came_back(desk, desk.world)
    new = desk.do(verbs.start_compensation, desk.olga, case, amount_minor=1000, reason="Another card.")
    asked = desk.world.approval(new)
    ada = visit(desk.world.ada)
    for path in (f"/tasks/{new.id}/", f"/approvals/{asked.id}/"):
        text = read(ada, path)
        assert "Approvers were asked, as for everything that makes good an earlier refund." in text
        assert "over the threshold" not in text
        assert f'href="/tasks/{first.id}/"' in ada.text(path)
    assert "It makes good an earlier refund, which always needs people" in read(ada, f"/approvals/{asked.id}/")


def test_what_two_people_recorded_is_done_and_calls_nobody_any_more(desk: Desk, visit: Visit) -> None:
    """M23, F29: the mark stays and is told as what was decided; no earlier declaration is said to have lapsed."""
    world = desk.world
    order = world.order()
    world.sandbox.fault("F29", times=1, match={"payment_ref": f"pi_{order}"}, amount_minor=4500)
    task = world.ask(order, 4000)
    case = desk.case(task, "AMOUNT_MISMATCH")
    rita = visit(world.rita)
    assert "It is not proved that the provider did what was asked: the provider's refund differs" in read(
        rita, f"/tasks/{task.id}/")
    desk.do(verbs.query_now, desk.olga, case)
    desk.answered(case)
    for person in (desk.olga, desk.otto):
        desk.do(verbs.record_as_found, person, case, code="provider_confirms", reason="Seen.")
    after = read(rita, f"/tasks/{task.id}/")
    assert "What people have looked at and decided on: the provider's refund has another amount" in after
    assert "This needs a person" not in after and "Who must act" not in after
    page = read(visit(desk.olga), f"/reconciliation/cases/{case.id}/")
    assert "An earlier declaration no longer counts" not in page and page.count("This case is closed.") == 1


def test_a_wait_for_a_case_is_told_in_words_only(desk: Desk, visit: Visit) -> None:
    """M39: what is stored as a code is never shown as a reason that somebody gave."""
    world = desk.world
    order = world.order()
    a_case(world, "EXTERNAL_REFUND", payment_ref=f"pi_{order}", order_ref=order)
    task = world.ask(order, 1200)
    desk.parked(task)
    text = visit(world.rita).text(f"/tasks/{task.id}/")
    shown = re.sub(r"<details.*?</details>", "", text, flags=re.S)
    assert "It was parked: a case about its payment or order is open." in shown and "case_open" not in shown


def test_who_may_only_look_at_cases_is_told_so_once(desk: Desk, visit: Visit) -> None:
    """M40: a reason that is the same for every act is said once, and there is no form but the export's."""
    case = a_case(desk.world, "EXTERNAL_REFUND", payment_ref="pi_1", order_ref="ORD-1")
    page = f"/reconciliation/cases/{case.id}/"
    text = read(visit(desk.world.sam), page)
    assert text.count("You may see cases here, but not work on them.") == 1 and "Not possible now" not in text
    assert "Not possible now" in read(visit(desk.olga), page)
