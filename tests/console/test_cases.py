"""The case page: what each side says, what was seen, what may be done and why not, and forms bound to what was read."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runtime_app.chronicle import canonical
from runtime_app.desk import verbs
from runtime_app.models import Case, Task, User
from tests.console.conftest import Visitor
from tests.console.rows import a_case
from tests.desk.conftest import Desk
from tests.world import World

Visit = Callable[[User | None], Visitor]


@pytest.fixture
def desk(world: World) -> Desk:
    return Desk(world)


def address(case: Case, act: str = "") -> str:
    return f"/reconciliation/cases/{case.id}/{act}" + ("/" if act and not act.endswith("json") else "")


def plain(text: str) -> str:
    """What a reader reads: no tags, one space between words."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", text)).split())


def act(visitor: Visitor, case: Case, name: str, action: str, **fields: Any) -> Any:
    """Send the form of this action as the page has it; `name` is the action's own, `action` its address."""
    hidden = visitor.form(address(case), address(case, action))
    return visitor.send(address(case, action), {**hidden, **{f"{name}-{key}": value for key, value in fields.items()}})


def mismatch(desk: Desk) -> Case:
    """The provider refunded another amount than was asked for."""
    world = desk.world
    order = world.order()
    task = world.ask(order, 4000)
    world.sandbox.fault("F29", times=1, match={"payment_ref": f"pi_{order}"}, amount_minor=4500)
    return desk.case(task, "AMOUNT_MISMATCH")


def test_three_sides_stand_beside_each_other_and_what_differs_is_marked(desk: Desk, visit: Visit) -> None:
    """M40, F29: ours, the provider's, the order system's; only the differing field of the provider is marked."""
    case = mismatch(desk)
    text = visit(desk.olga).text(address(case))
    found = re.findall(r"<tr(?: class=\"changed\")?><th scope=\"row\">.*?</tr>", text, re.S)
    rows = {plain(row).split(" ")[0]: plain(row) for row in found}
    assert rows["Amount"] == "Amount 40.00 USD 45.00 USD differs —"
    assert rows["Captured"] == "Captured — — 100.00 USD"
    assert rows["Payment"].count(f"pi_{case.order_ref}") == 3 and text.count(">differs<") == 1
    assert "The provider shows 45.00 USD as its refund re_" in plain(text)
    assert "differs from what was asked" in plain(text)
    operation = visit(desk.olga).text(f"/reconciliation/{case.operation_id}/")
    assert address(case) in operation and ">differs<" in operation


def test_a_refund_that_fits_differs_in_nothing(desk: Desk, visit: Visit) -> None:
    """The mark means something: where all sides agree there is none."""
    world = desk.world
    task = world.ask(world.order(), 4000)
    world.finish(task)
    text = visit(desk.olga).text(f"/reconciliation/{world.operation(task).id}/")
    assert ">differs<" not in text and "The provider has confirmed this refund." in text


def test_the_conclusion_says_what_is_known_and_what_becomes_possible_when(desk: Desk, visit: Visit) -> None:
    """M23, M40: looks, horizon and who may then declare, in words; the act itself says why not, and from when."""
    desk.world.retime(reconcile_after=[0.05, 3600], absent_age=0.0, absent_count=1)
    _order, task = desk.lost(4000)
    desk.world.until(lambda: desk.world.operation(task).absents >= 1)
    case = a_case(desk.world, "LOOKUP_UNAVAILABLE", desk.world.operation(task))
    before = plain(visit(desk.olga).text(address(case)))
    assert "1 complete look shows no such refund." in before and "the provider may still act on what was sent" in before
    assert "After that two people may declare it not executed" in before
    assert "Declare not executed The provider may still act on what was sent." in before
    desk.world.clock(hours=2)
    after = plain(visit(desk.olga).text(address(case)))
    assert "can no longer act on what was sent" in after and "may still act" not in after
    desk.world.clock(days=2)
    desk.world.until(lambda: Case.objects.filter(task=task, class_name="ABSENT_FINAL").exists())


def test_two_people_declare_and_the_second_is_told_what_the_first_said(desk: Desk, visit: Visit) -> None:
    """M23, M24, I10: the first declaration does nothing; the second, on the same evidence, ends it."""
    _order, task, case = desk.absent()
    olga, otto = visit(desk.olga), visit(desk.otto)
    first = act(olga, case, "declare_not_executed", "declare", code="provider_denies", reason="They wrote so.")
    assert first.status_code == 302
    task.refresh_from_db()
    assert task.status == "reconciling"
    page = plain(olga.text(address(case)))
    assert "It takes effect when a second person says the same" in page
    assert "Olga Brook declared that it was never executed: The provider has said in writing" in page
    assert address(case, "declare") not in olga.text(address(case))  # the same person has no second form
    seen = plain(otto.text(address(case)))
    assert "Olga Brook has declared; a second person is needed" in seen and "They wrote so." in seen
    assert "absent_everywhere" not in otto.text(address(case))  # both rest on the same
    second = act(otto, case, "declare_not_executed", "declare", code="provider_denies", reason="I read the letter.")
    assert second.status_code == 302
    desk.world.finish(task)
    case.refresh_from_db()
    assert (task.status, case.state, case.outcome) == ("failed", "closed", "not_executed")
    closed = plain(otto.text(address(case)))
    assert "Both have said so, and it is done" in closed and "This case is closed." in closed


def test_a_form_that_was_read_before_something_changed_is_refused_and_says_what(desk: Desk, visit: Visit) -> None:
    """Console rule 3: 409, nothing recorded, and who did what meanwhile."""
    case = a_case(desk.world, "RETURNED", payment_ref="pi_1", order_ref="ORD-1")
    olga, otto = visit(desk.olga), visit(desk.otto)
    his = otto.form(address(case), address(case, "close"))
    assert act(olga, case, "assign", "assign", to="olga").status_code == 302
    lost = otto.send(address(case, "close"), {**his, "close-outcome": "written_off", "close-reason": "small"})
    assert lost.status_code == 409
    said = plain(lost.content.decode())
    assert "Nothing of yours was recorded" in said and "Olga Brook took it on." in said
    case.refresh_from_db()
    assert case.state == "open" and desk.entries(case) == ["assigned"]
    empty = otto.send(address(case, "close"), his)  # incomplete too: that it changed is what he must know first
    assert empty.status_code == 409


def test_only_what_is_allowed_is_a_form_and_the_rest_says_why_not(desk: Desk, visit: Visit) -> None:
    """M40: disabled ones say why; there is no form to send again, to edit an amount or to force a success."""
    case = a_case(desk.world, "EXTERNAL_REFUND", payment_ref="pi_1", order_ref="ORD-1", amount_minor=7, currency="USD")
    olga = visit(desk.olga)
    text = olga.text(address(case))
    forms = set(re.findall(r'action="/reconciliation/cases/[^"]*?/([a-z.]+)/?"', text))
    assert forms == {"evidence.json", "query", "acknowledge", "assign", "snooze", "comment"}
    assert "This case is not about a refund whose outcome is unknown." in plain(text)
    assert "resend" not in text.lower()
    sam = visit(desk.world.sam)  # may see, not work
    assert set(re.findall(r'action="/reconciliation/cases/[^"]*?/([a-z.]+)/?"', sam.text(address(case)))) == {
        "evidence.json"}
    hidden = olga.form(address(case), address(case, "comment"))
    token = sam.form(address(case), address(case, "evidence.json"))
    refused = sam.send(address(case, "comment"), {**hidden, **token, "comment-text": "hello"})
    assert refused.status_code == 403 and desk.entries(case) == []


def test_an_action_is_a_post_with_the_forms_token(desk: Desk, visit: Visit) -> None:
    """C18, console rule 4: no GET, no POST without the token."""
    case = a_case(desk.world, "RETURNED", payment_ref="pi_1", order_ref="ORD-1")
    olga = visit(desk.olga)
    for name in ("query", "attach", "record", "acknowledge", "declare", "cancel", "compensate", "close", "assign",
                 "snooze", "comment", "evidence.json"):
        assert olga.get(address(case, name)).status_code == 405, name
        assert olga.send(address(case, name), {}).status_code == 403, name
    assert desk.entries(case) == []


def test_what_cannot_be_read_is_told_beside_its_field(desk: Desk, visit: Visit) -> None:
    """Bad input: 422 with a sentence that names it, never a 500, nothing recorded."""
    _order, _task, case = desk.absent()
    olga = visit(desk.olga)
    for name, action, fields, sentence in (
        ("attach", "attach", {"ref": "a\u200bb"}, "Use 1 to 200 ASCII letters"),
        ("attach", "attach", {"ref": ""}, "This field is required."),
        ("declare_not_executed", "declare", {"code": "x", "reason": "r"}, "Select a valid choice."),
        ("declare_not_executed", "declare", {"code": "provider_denies", "reason": " "}, "This field is required."),
        ("snooze", "snooze", {"until": "soon"}, "Enter a valid date."),
        ("snooze", "snooze", {"until": ""}, "This field is required."),
        ("snooze", "snooze", {"until": "2099-01-01"}, "at most 30 days ahead"),
        ("assign", "assign", {"to": "bea"}, "Select a valid choice."),
        ("comment", "comment", {"text": "a\u202eb"}, "Leave out control characters"),
        ("comment", "comment", {"revision": "x", "text": "t"}, "This form is not complete"),
        ("comment", "comment", {"seen_sha256": "", "text": "t"}, "This form is not complete"),
        ("comment", "comment", {"revision": str(2**70), "text": "t"}, "This form is not complete"),
    ):  # fmt: skip
        answer = act(olga, case, name, action, **fields)
        assert answer.status_code == 422, (name, fields, answer.status_code)
        assert sentence in plain(answer.content.decode()), (name, fields)
    assert desk.entries(case) == []
    desk.do(verbs.comment, desk.olga, case, text="done")
    settled(desk, case)


def settled(desk: Desk, case: Case) -> None:
    """Two people end it, so that nothing is left in doubt."""
    for who in (desk.olga, desk.otto):
        desk.do(verbs.declare_not_executed, who, case, code="provider_denies", reason="r")


def test_a_case_is_given_to_somebody_put_off_and_taken_up_again(desk: Desk, visit: Visit) -> None:
    """Actions of an open case that decide nothing."""
    case = a_case(desk.world, "RETURNED", payment_ref="pi_1", order_ref="ORD-1")
    olga = visit(desk.olga)
    text = olga.text(address(case))
    assert '<option value="otto">Otto Lake</option>' in text and "Sam Field" not in text and "Bea" not in text
    assert act(olga, case, "assign", "assign", to="otto").status_code == 302
    day = (case.opened_at + timedelta(days=3)).date().isoformat()
    assert act(olga, case, "snooze", "snooze", until=day).status_code == 302
    assert "Take it up again now" in olga.text(address(case))
    assert act(olga, case, "snooze", "snooze").status_code == 302
    assert act(olga, case, "comment", "comment", text="<b>first</b>\nsecond").status_code == 302
    told = olga.text(address(case))
    assert "&lt;b&gt;first&lt;/b&gt;\nsecond" in told
    words = plain(told)
    assert "Olga Brook gave it to Otto Lake." in words and "Olga Brook took it up again." in words
    assert desk.entries(case) == ["assigned", "snoozed", "snoozed", "commented"]


def test_a_case_is_closed_with_a_word_of_its_class(desk: Desk, visit: Visit) -> None:
    """M40: what became of it is one of a list, with a reason; a closed case has no more forms but to write."""
    case = a_case(desk.world, "DISPUTED", payment_ref="pi_1", order_ref="ORD-1")
    olga = visit(desk.olga)
    assert act(olga, case, "close", "close", outcome="dispute_won", reason="the bank agreed").status_code == 302
    text = olga.text(address(case))
    assert "The dispute was decided for us." in text and "the bank agreed" in text
    assert set(re.findall(r'action="/reconciliation/cases/[^"]*?/([a-z.]+)/?"', text)) <= {"evidence.json", "comment"}
    assert str(case.id) in olga.text("/reconciliation/?show=cases&state=closed")


def test_a_new_refund_is_asked_for_from_the_case_and_needs_its_own_approval(desk: Desk, visit: Visit) -> None:
    """M15: after it was declared not executed; at most what the first one was, typed in major units."""
    _order, task, case = desk.absent()
    settled(desk, case)
    desk.world.finish(task)
    olga = visit(desk.olga)
    over = act(olga, case, "start_compensation", "compensate", amount="99.00", reason="again")
    assert over.status_code == 422 and "Use at most" in over.content.decode()
    wrong = act(olga, case, "start_compensation", "compensate", amount="1,5", reason="again")
    assert wrong.status_code == 422
    done = act(olga, case, "start_compensation", "compensate", amount="10.00", reason="the customer waits")
    assert done.status_code == 302 and done["Location"].startswith("/tasks/")
    new = Task.objects.exclude(pk=task.pk).get()
    assert (new.amount_minor, new.requester) == (1000, desk.olga)
    assert f"/tasks/{new.id}/" in olga.text(address(case))
    assert desk.world.approval(new).state == "open"


def test_the_evidence_is_exported_whole_with_its_digest_and_that_is_recorded(desk: Desk, visit: Visit) -> None:
    """M40: one JSON file, no secret in it, and an entry with the digest of what was taken."""
    case = mismatch(desk)
    sam = visit(desk.world.sam)  # whoever may see it may take it
    answer = sam.send(address(case, "evidence.json"), sam.form(address(case), address(case, "evidence.json")))
    assert answer.status_code == 200 and answer["Content-Type"] == "application/json"
    assert f"evidence-{case.id}.json" in answer["Content-Disposition"]
    said = json.loads(answer.content)
    digest = said.pop("sha256")
    assert digest == hashlib.sha256(canonical(said).encode()).hexdigest()
    assert said["operation"]["id"] == str(case.operation_id) and said["evidence"] and said["calls"] and said["events"]
    assert all(len(e["body_sha256"]) == 64 for e in said["evidence"])
    text = answer.content.decode()
    assert "sk_test_world" not in text and "whsec_" not in text and "request_body" not in text
    assert case.entries.get().data == {"sha256": digest}
    assert "Sam Field exported the evidence." in visit(desk.olga).text(address(case))


def test_another_tenants_case_is_not_there(desk: Desk, visit: Visit) -> None:
    """M04: by no address and no method."""
    case = a_case(desk.world, "RETURNED", payment_ref="pi_1", order_ref="ORD-1")
    bea = visit(desk.world.bea)
    bea.client.handler.enforce_csrf_checks = False
    assert bea.get(address(case)).status_code == 404
    for name in ("query", "close", "comment", "evidence.json"):
        assert bea.send(address(case, name), {"comment-text": "x"}).status_code == 404, name
    assert desk.entries(case) == []


def test_the_page_asks_as_much_for_much_evidence_as_for_little(desk: Desk, visit: Visit) -> None:
    """Lesson 28: bounded questions, however much was seen and written."""
    desk.world.retime(reconcile_after=[0.02], reconcile_every=0.02)
    _order, task = desk.lost(4000)
    case = a_case(desk.world, "LOOKUP_UNAVAILABLE", desk.world.operation(task))
    olga, counts = visit(desk.olga), list[int]()
    for looks in (2, 12):
        desk.world.until(lambda n=looks: desk.world.operation(task).checks >= n)  # type: ignore[misc]
        desk.do(verbs.comment, desk.olga, case, text="seen")
        with CaptureQueriesContext(connection) as asked:
            olga.text(address(case))
        counts.append(len(asked))
    assert counts[0] == counts[1] and counts[0] <= 35
    assert "more like it" in olga.text(address(case))
    desk.world.clock(days=2)
    desk.world.until(lambda: Case.objects.filter(task=task, class_name="ABSENT_FINAL").exists())


def test_the_task_leads_to_its_case(desk: Desk, visit: Visit) -> None:
    """M39: the mark, the banner and the box of what happens next lead there, for those who may see cases."""
    case = mismatch(desk)
    page = f"/tasks/{case.task_id}/"
    text = visit(desk.olga).text(page)
    assert text.count(f'href="{address(case)}"') == 3 and "The case: Another amount" in text
    story = visit(desk.olga).get(f"{page}story/", hx_request="true").content.decode()
    assert f'href="{address(case)}"' in story
    rita = visit(desk.world.rita).text(page)
    assert "another amount than was asked for" in rita and "/reconciliation/" not in rita


def test_a_task_that_waits_for_a_case_of_its_payment_leads_there(desk: Desk, visit: Visit) -> None:
    """Parked by a case of another refund: who must act, and where."""
    world = desk.world
    order = world.order()
    case = a_case(world, "DUPLICATE_EXECUTION", payment_ref=f"pi_{order}", order_ref=order)
    task = world.ask(order, 1000)
    desk.parked(task)
    text = visit(desk.olga).text(f"/tasks/{task.id}/")
    assert f'href="{address(case)}"' in text and "It goes on by itself when that is closed." in text
    desk.do(verbs.close, desk.olga, case, outcome="recovered", reason="it came back")
    world.clock(seconds=60)
    world.finish(task)
