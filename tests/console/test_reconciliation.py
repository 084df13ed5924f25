"""The reconciliation queue: what is at stake, whose it is, what comes next, and no way to send anything again."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.db import connection
from django.test.utils import CaptureQueriesContext

from runtime_app.models import Case, Operation, User
from tests.console.conftest import Visitor
from tests.console.rows import a_case
from tests.world import World

Visit = Callable[[User | None], Visitor]
CASE = re.compile(r'class="row-link" href="/reconciliation/cases/([0-9a-f-]{36})/"')
OUTCOME = re.compile(r'class="row-link" href="/reconciliation/([0-9a-f-]{36})/"')
MORE = re.compile(r'href="(/reconciliation/\?[^"]*cursor=[^"]*)" rel="next"')


def in_doubt(world: World, amount: int = 4000) -> Operation:
    """A refund whose answer was lost and which is not looked at for an hour."""
    world.retime(reconcile_after=[3600], retry_first=0.05)
    ref = world.order()
    task = world.ask(ref, amount)
    world.sandbox.fault("F4", times=1, match={"payment_ref": f"pi_{ref}"})
    world.until(lambda: "operation.unknown" in world.events(task))
    return world.operation(task)


def settle(world: World) -> None:
    """The hour passes, so that the world ends with every outcome proved."""
    world.clock(hours=2)
    world.until(lambda: not Operation.objects.exclude(state="succeeded").exists())


def test_an_unknown_outcome_is_listed_with_all_that_one_asks_about_it(world: World, visit: Visit) -> None:
    """M40, R2: amount, age, last result, next look, sends and how long the key still counts; a wish to cancel."""
    operation = in_doubt(world)
    world.clock(minutes=30)
    olga = visit(world.olga)
    text = olga.text("/reconciliation/")
    assert OUTCOME.findall(text) == [str(operation.id)]
    assert "Outcome unknown" in text and "answer lost" in text and "40.00" in text
    assert "21&nbsp;h" in text or "21 h 29 min" in text  # 24 hours, less the margin of 2 and the half hour
    assert "cancel wished" not in text
    sam = visit(world.sam)
    page, action = f"/tasks/{operation.task_id}/", f"/tasks/{operation.task_id}/cancel/"
    sam.send(action, {**sam.form(page, action), "cancel-reason": "changed their mind"})
    assert "cancel wished" in olga.text("/reconciliation/")
    settle(world)


def test_the_key_window_is_marked_when_it_closes_soon_and_when_it_has_closed(world: World, visit: Visit) -> None:
    """M40: near means four hours."""
    operation = in_doubt(world)
    olga = visit(world.olga)
    world.clock(hours=19)
    assert re.search(r"state-doubt.{0,200}closes in", olga.text("/reconciliation/"), re.S)
    world.clock(hours=3)
    text = olga.text("/reconciliation/")
    assert "closes in" not in text and ">closed<" in text
    assert operation.order_ref in text
    settle(world)


def test_nothing_on_the_queue_sends_anything_again(world: World, visit: Visit) -> None:
    """M24: no form but search and sign-out, and no word that offers it."""
    operation = in_doubt(world)
    case = a_case(world, "LOOKUP_UNAVAILABLE", operation)
    for path in ("/reconciliation/", "/reconciliation/?show=cases", f"/reconciliation/{operation.id}/"):
        text = visit(world.olga).text(path)
        actions = set(re.findall(r'<form[^>]*method="post"[^>]*action="([^"]*)"', text))
        assert actions <= {"/accounts/logout/", "/tenant/"}, path
        assert "resend" not in text.lower(), path
    settle(world)
    case.refresh_from_db()
    assert case.state == "closed"


def test_a_case_shows_its_owner_and_its_deadline_and_overdue_ones_are_marked(world: World, visit: Visit) -> None:
    """M40: whose it is and by when."""
    case = a_case(world, "DUPLICATE_EXECUTION", payment_ref="pi_1", order_ref="ORD-1", amount_minor=700, currency="USD")
    olga, path = visit(world.olga), "/reconciliation/?show=cases"
    text = olga.text(path)
    assert "Executed more than once" in text and "Critical" in text and "nobody" in text and "overdue" not in text
    Case.objects.filter(pk=case.pk).update(owner=world.olga)
    world.clock(hours=2, minutes=1)
    text = olga.text(path)
    assert "overdue" in text and "Olga Brook" in text and ">you<" in text
    assert ">you<" not in visit(world.sam).text(path)


def test_filters_are_addresses_and_find_what_they_say(world: World, visit: Visit) -> None:
    """M40: by class, severity, owner, state, currency and any id; an unknown value is no filter."""
    operation = in_doubt(world)
    unknown = a_case(world, "LOOKUP_UNAVAILABLE", operation)
    double = a_case(world, "DUPLICATE_EXECUTION", payment_ref="pi_2", order_ref="ORD-2", amount_minor=5, currency="JPY",
                    details={"refunds": [{"ref": "re_outside"}]})
    Case.objects.filter(pk=double.pk).update(owner=world.olga)
    olga, base = visit(world.olga), "/reconciliation/?show=cases"
    both = {str(unknown.id), str(double.id)}
    for query, wanted in (
        ("", both), ("&case=LOOKUP_UNAVAILABLE", {str(unknown.id)}), ("&severity=critical", {str(double.id)}),
        ("&owner=mine", {str(double.id)}), ("&owner=nobody", {str(unknown.id)}), ("&currency=JPY", {str(double.id)}),
        ("&q=pi_2", {str(double.id)}), ("&q=re_outside", {str(double.id)}), (f"&q={operation.id}", {str(unknown.id)}),
        (f"&q={double.id}", {str(double.id)}), ("&state=closed", set()), ("&state=snoozed", set()),
        ("&case=NONSENSE&owner=x&severity=9&state=on", both), ("&q=nothing", set()),
        ("&severity=high&owner=mine", set()),
    ):
        assert set(CASE.findall(olga.text(base + query))) == wanted, query
    for query, found in (("", 1), ("state=unknown", 1), ("state=pending", 0), ("owner=mine", 0), ("owner=nobody", 1),
                         ("case=LOOKUP_UNAVAILABLE", 1), ("severity=critical", 0), ("currency=EUR", 0),
                         (f"q={operation.order_ref}", 1), (f"q={operation.id}", 1), ("q=x%00", 0)):
        assert len(OUTCOME.findall(olga.text(f"/reconciliation/?{query}"))) == found, query
    settle(world)


def test_a_case_that_is_put_off_leaves_the_list_until_its_day(world: World, visit: Visit) -> None:
    """Console page 1: snoozed things are a list of their own, and come back by themselves."""
    case = a_case(world, "RETURNED", payment_ref="pi_3", order_ref="ORD-3")
    Case.objects.filter(pk=case.pk).update(snoozed_until=case.opened_at.replace(year=case.opened_at.year + 1))
    olga, base = visit(world.olga), "/reconciliation/?show=cases"
    assert not CASE.findall(olga.text(base)) and CASE.findall(olga.text(f"{base}&state=snoozed")) == [str(case.id)]
    world.clock(days=366)
    assert CASE.findall(olga.text(base)) == [str(case.id)] and not CASE.findall(olga.text(f"{base}&state=snoozed"))


def test_what_is_at_stake_is_summed_by_class_and_currency_and_age(world: World, visit: Visit) -> None:
    """M40: sums never mix currencies; every figure stands in its band; the gravest stands first."""
    for n in range(3):
        a_case(world, "RETURNED", payment_ref=f"pi_r{n}", order_ref="ORD-4", matter=f"r{n}", amount_minor=1050,
               currency="USD")
    world.clock(hours=1)
    a_case(world, "RETURNED", payment_ref="pi_r9", order_ref="ORD-4", matter="r9", amount_minor=7, currency="JPY")
    a_case(world, "CURRENCY", payment_ref="pi_r8", order_ref="ORD-4", matter="r8")
    text = visit(world.olga).text("/reconciliation/?show=cases")
    rows = [re.sub(r"<[^>]+>|\s+", " ", row) for row in re.findall(r'<tr><th scope="row">.*?</tr>', text, re.S)]
    told = [" ".join(row.split()) for row in rows]
    assert told == [
        "Statement in another currency Critical — 1 1 0 0 0",
        "Money came back High 7 JPY 1 1 0 0 0",
        "Money came back High 31.50 USD 3 0 3 0 0",
    ]


def test_a_walk_through_many_cases_meets_each_once(world: World, visit: Visit) -> None:
    """C48: pages by position, while cases are closed and opened between them."""
    there = {str(a_case(world, "RETURNED", payment_ref=f"pi_{n}", matter=f"m{n}").id) for n in range(120)}
    olga, path, met = visit(world.olga), "/reconciliation/?show=cases", list[str]()
    while path:
        text = olga.text(path)
        met += CASE.findall(text)
        a_case(world, "RETURNED", payment_ref="pi_new", matter=f"new{len(met)}")
        found = MORE.search(text)
        path = found.group(1).replace("&amp;", "&") if found else ""
    assert len(met) == len(set(met)) and there <= set(met)


def test_the_queue_asks_as_much_for_many_rows_as_for_one(world: World, visit: Visit) -> None:
    """Lesson 28: bounded questions in both parts."""
    olga, told = visit(world.olga), list[list[int]]()
    for _ in range(2):
        for n in range(1 + 4 * len(told)):
            a_case(world, "STALE_PENDING", in_doubt(world, 100 + n))
        counts = []
        for path in ("/reconciliation/", "/reconciliation/?show=cases"):
            with CaptureQueriesContext(connection) as asked:
                olga.text(path)
            counts.append(len(asked))
        told.append(counts)
    assert told[0] == told[1] and max(told[0]) <= 20
    settle(world)


def test_another_tenants_cases_are_neither_listed_nor_counted_nor_found(world: World, visit: Visit) -> None:
    """M04, M29: Bea sees nothing of Amber's."""
    case = a_case(world, "RETURNED", payment_ref="pi_5", order_ref="ORD-5", amount_minor=10, currency="USD")
    bea = visit(world.bea)
    for query in ("", "&q=pi_5", f"&q={case.id}"):
        text = bea.text(f"/reconciliation/?show=cases{query}")
        assert "ORD-5" not in text and "Money came back</a>" not in text
    assert "No case is open" in bea.text("/")


def test_a_person_without_the_right_is_refused(world: World, visit: Visit) -> None:
    """M21: rights, not links."""
    assert visit(world.rita).get("/reconciliation/").status_code == 403
    assert visit(world.rita).get("/reconciliation/?show=cases").status_code == 403


def test_invisible_characters_are_made_visible(world: World, visit: Visit) -> None:
    """M38: two references that differ cannot look alike."""
    a_case(world, "EXTERNAL_REFUND", payment_ref="pi_\u202e5", order_ref="<b>ORD</b>")
    text = visit(world.olga).text("/reconciliation/?show=cases")
    assert "\u202e" not in text and r"pi_\u202e5" in text and "&lt;b&gt;ORD" in text
