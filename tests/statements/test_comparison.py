"""Every class by its sequence, on really committed rows: what is asked, what a person is told, and what never moves."""

from __future__ import annotations

from runtime_app import tasks
from runtime_app.adapters.payments.types import LineKind
from runtime_app.ledger.cases import close
from runtime_app.models import Balance, Case, Event, Evidence, Operation, PaymentLook
from runtime_app.money import Money
from runtime_app.statements import calendar
from tests.statements.books import Books


def figures(operation: Operation) -> tuple[str, int, int]:
    """State of the operation, and what its balance says is refunded and in excess."""
    operation.refresh_from_db()
    balance = Balance.objects.get(tenant=operation.tenant, payment_ref=operation.payment_ref)
    return operation.state, balance.refunded_minor, balance.excess_minor


def test_an_exact_line_is_matched_by_either_reference_and_kept_as_evidence(books: Books) -> None:
    """MATCHED: by the provider's reference (F31: ours may be lost), or by ours."""
    first, second = books.refund(), books.refund()
    books.take(books.line(first, our_ref=None), books.line(second, provider_ref=None))
    assert books.classes() == {"MATCHED": 2}
    kept = Evidence.objects.filter(kind="statement_line", finding="booked")
    assert {e.operation_id for e in kept} == {first.id, second.id}
    assert books.cases() == []


def test_a_like_amount_is_a_suggestion_and_never_a_match(books: Books) -> None:
    """MISSING_HERE, with the operation of the same amount and time named for a person to look at."""
    operation = books.refund()
    line = books.line(None, -2500)
    books.take(line)
    stored = books.stored(line)
    assert (stored.class_name, stored.operation) == ("MISSING_HERE", None)
    assert [s["operation"] for s in books.case("MISSING_HERE").details["suggestions"]] == [str(operation.id)]
    assert books.case("MISSING_HERE").operation is None
    assert books.overview().lines[0].suggestions[0]["order_ref"] == operation.order_ref


def test_a_refund_made_outside_of_us_is_one_case_whichever_way_it_is_found(books: Books) -> None:
    """MISSING_HERE, C10: the payment is looked at, and the case that this opens is the line's."""
    operation = books.refund(2500)
    told = books.world.sandbox.control("PATCH", f"/orders/{operation.order_ref}", {
        "outside_refund": {"payment_ref": operation.payment_ref, "amount_minor": 300}})
    assert told.status_code == 200, told.text
    books.next_day()
    books.read()
    assert books.classes() == {"MATCHED": 1, "MISSING_HERE": 1}
    assert books.cases() == [] and PaymentLook.objects.get().payment_ref == operation.payment_ref
    assert any("do not know" in stop for stop in books.overview().stops)
    books.look()
    books.again()
    assert books.cases() == ["EXTERNAL_REFUND"] and books.overview().stops == ()
    line = next(n.line for n in books.overview().lines if n.line.class_name == "MISSING_HERE")
    assert line.case == books.case("EXTERNAL_REFUND")
    books.again()
    assert Case.objects.count() == 1


def test_a_booking_that_the_provider_does_not_know_is_a_case_of_its_own(books: Books) -> None:
    """F43 on a payment of ours: the look shows nothing of it, so the line itself is what a person is shown."""
    operation = books.refund()
    line = books.line(None, -700, payment_ref=operation.payment_ref)
    books.take(books.line(operation), line)
    assert books.cases() == []
    books.look()
    books.again()
    case = books.case("MISSING_HERE")
    assert (case.payment_ref, case.order_ref, case.amount_minor) == (
        operation.payment_ref, operation.order_ref, 700)
    assert (Evidence.objects.get(case=case).body or {})["ref"] == line.ref


def test_a_refund_that_a_statement_showed_first_is_not_opened_again_by_a_look(books: Books) -> None:
    """MISSING_HERE of a payment that we did not know then; EXTERNAL_REFUND is not opened beside it."""
    order = books.world.order()
    books.world.sandbox.patch_order(order, outside_refund={"payment_ref": f"pi_{order}", "amount_minor": 300})
    books.next_day()
    books.read()
    assert books.cases() == ["MISSING_HERE"]
    task = books.world.ask(order, 400)
    books.world.until(lambda: Balance.objects.filter(payment_ref=f"pi_{order}").exists())
    books.look()
    task.refresh_from_db()
    assert Case.objects.filter(class_name="EXTERNAL_REFUND").count() == 0


def test_a_line_wakes_the_task_whose_outcome_is_not_known(books: Books) -> None:
    """RESOLVES_UNKNOWN, M23: the provider is asked at once, and its answer decides."""
    operation = books.in_doubt(fault="F5")
    task = books.task(operation)
    before = books.world.events(task).count("operation.checked")
    books.next_day()
    books.read()
    assert books.classes() == {"RESOLVES_UNKNOWN": 1}
    operation.refresh_from_db()
    assert operation.state == "unknown"  # the line itself proves nothing
    books.world.finish(task)
    assert figures(operation) == ("succeeded", 2500, 0)
    assert books.world.events(task).count("operation.checked") == before + 1
    assert "statement.line_seen" in books.world.events(task)
    books.again()
    assert books.classes() == {"MATCHED": 1} and books.cases() == []


def test_the_task_is_told_of_a_line_once(books: Books) -> None:
    operation = books.in_doubt(fault="F5")
    books.next_day()
    books.read()
    for _ in range(3):
        books.again()
    assert Event.objects.filter(type="statement.line_seen").count() == 1
    assert Evidence.objects.filter(operation=operation, kind="statement_line").count() == 1


def test_what_differs_stops_the_order_and_moves_nothing(books: Books) -> None:
    """AMOUNT_OVER, AMOUNT_UNDER, CURRENCY, PARENT: a case each, with the line, bound to operation and task."""
    made = [books.refund() for _ in range(4)]
    books.take(
        books.line(made[0], -2600), books.line(made[1], -2400), books.line(made[2], amount=Money(-2500, "EUR")),
        books.line(made[3], payment_ref="pi_other"),
    )
    wanted = ["AMOUNT_OVER", "AMOUNT_UNDER", "CURRENCY", "PARENT"]
    assert books.cases() == wanted and books.classes() == dict.fromkeys(wanted, 1)
    for operation, name in zip(made, wanted, strict=True):
        case = books.case(name)
        assert (case.blocks, case.operation, case.order_ref) == ("order", operation, operation.order_ref)
        assert figures(operation) == ("succeeded", 2500, 0)
        task = books.task(operation)
        assert (task.status, task.attention) == ("completed", name)
        assert books.world.said(task, "case.opened")["class"] == name
    books.again()
    assert Case.objects.count() == 4


def test_a_differing_line_of_an_unknown_outcome_is_asked_about_first(books: Books) -> None:
    """F29: the provider's own picture opens the mismatch (row 7), and the line is told by that case."""
    operation = books.in_doubt(fault="F29", amount_minor=2600)
    books.next_day()
    books.read()
    assert books.classes() == {"AMOUNT_OVER": 1}
    books.world.until(lambda: Case.objects.filter(class_name="AMOUNT_MISMATCH").exists())
    books.again()
    assert books.cases() == ["AMOUNT_MISMATCH"]
    assert books.overview().lines[0].line.case == books.case("AMOUNT_MISMATCH")
    assert figures(operation)[0] == "unknown"


def test_the_other_mode_is_a_case_even_when_all_else_is_equal(books: Books) -> None:
    """ACCOUNT_OR_MODE, F49."""
    operation = books.refund()
    books.take(books.line(operation, live=True))
    assert books.cases() == ["ACCOUNT_OR_MODE"] and books.case("ACCOUNT_OR_MODE").operation == operation


def test_a_second_booking_is_asked_about_and_the_provider_says_which_way(books: Books) -> None:
    """DUPLICATE_EXECUTION, F32: the excess is recorded by what the provider shows, not by the line."""
    operation = books.refund()
    books.world.sandbox.fault("F33", match={"payment_ref": operation.payment_ref}, amount_minor=2500)
    books.take(books.line(operation), books.line(operation, provider_ref="re_second"))
    assert books.classes() == {"MATCHED": 1, "DUPLICATE_EXECUTION": 1} and books.cases() == []
    assert figures(operation) == ("succeeded", 2500, 0)
    books.look()
    books.again()
    assert books.case("DUPLICATE_EXECUTION").operation == operation
    assert figures(operation)[0] == "succeeded"


def test_what_counted_as_not_done_and_is_booked_is_looked_at_and_follows_the_money(books: Books) -> None:
    """LATE_EXECUTION, row 23: the line hints, the provider's answer decides, the task keeps its end."""
    operation = books.in_doubt(fault="F20", seconds=600)
    task = books.task(operation)
    books.world.retime(reconcile_after=[0.05], reconcile_every=0.1, max_in_flight=0.5, absent_age=0.1, absent_count=1,
                       late_watch_every=3600.0)
    tasks.cancel(books.world.sam, task.id, reason="wrong order")
    books.world.finish(task)
    assert (task.status, figures(operation)) == ("cancelled", ("not_executed", 0, 0))
    books.world.sandbox.advance(700)
    books.world.until(lambda: books.world.effects(operation.order_ref))
    books.next_day()
    books.read()
    assert books.classes() == {"LATE_EXECUTION": 1} and figures(operation) == ("not_executed", 0, 0)
    books.look()
    books.again()
    assert figures(operation) == ("succeeded", 2500, 0)
    task.refresh_from_db()
    assert (task.status, task.attention) == ("cancelled", "LATE_EXECUTION")
    assert books.cases() == ["LATE_EXECUTION"] and books.overview().stops == ()


def test_money_that_came_back_is_looked_at_and_follows_the_money(books: Books) -> None:
    """RETURNED, row 24."""
    operation = books.refund()
    books.world.sandbox.set_refund(str(operation.provider_ref), "failed")
    books.next_day()
    books.read()
    assert books.classes() == {"MATCHED": 1, "RETURNED": 1} and figures(operation) == ("succeeded", 2500, 0)
    books.look()
    books.again()
    assert figures(operation) == ("returned", 0, 0)
    assert books.cases() == ["RETURNED"] and books.classes() == {"MATCHED": 1, "RETURNED": 1}
    total, = books.overview().totals
    assert (total.ours_minor, total.theirs_minor, total.back_minor) == (2500, 2500, 2500)


def test_a_statement_that_contradicts_the_provider_is_a_conflict_for_a_person(books: Books) -> None:
    """STATUS_CONFLICT: it says the money came back, the provider says it is done."""
    operation = books.refund()
    books.take(books.line(operation), books.line(operation, 2500))
    assert books.classes() == {"MATCHED": 1, "RETURNED": 1} and books.cases() == []
    books.look()
    books.again()
    assert books.classes() == {"MATCHED": 1, "STATUS_CONFLICT": 1}
    assert books.case("STATUS_CONFLICT").operation == operation and figures(operation)[0] == "succeeded"


def test_a_refused_refund_that_went_out_and_came_back_is_accounted_for(books: Books) -> None:
    """A provider may book a refund first and take it back when it fails; nothing of that is late."""
    task = books.world.ask(books.world.order(), 2500)
    books.world.sandbox.fault("F21", match={"payment_ref": f"pi_{task.order_ref}"}, then="failed", seconds=1)
    books.world.finish(task)
    operation = books.world.operation(task)
    assert operation.state == "failed"
    out, back = books.line(operation), books.line(operation, 2500)
    books.take(out)
    assert books.classes() == {"LATE_EXECUTION": 1}
    books.look()
    books.again()
    assert books.classes() == {"TIMING": 1} and books.cases() == []
    books.take(out, back)
    assert books.classes() == {"MATCHED": 2} and books.cases() == []


def test_a_refused_refund_that_went_out_and_never_came_back_is_a_conflict(books: Books) -> None:
    """STATUS_CONFLICT after the SLA."""
    task = books.world.ask(books.world.order(), 2500)
    books.world.sandbox.fault("F21", match={"payment_ref": f"pi_{task.order_ref}"}, then="failed", seconds=1)
    books.world.finish(task)
    books.take(books.line(books.world.operation(task)))
    books.look()
    books.next_day(5)
    books.again()
    assert books.cases() == ["STATUS_CONFLICT"]


def test_a_fee_or_an_exchange_is_a_note_and_no_case(books: Books) -> None:
    """FEE_OR_FX: gross equal, settled otherwise."""
    first, second = books.refund(), books.refund()
    lines = (books.line(first, fee=Money(30, "USD")), books.line(second, booked=Money(-2300, "EUR")))
    books.take(*lines)
    assert books.classes() == {"FEE_OR_FX": 2} and books.cases() == []
    assert [books.stored(line).note for line in lines] == ["Fee 0.30 USD.", "Booked as -23.00 EUR."]


def test_a_dispute_is_told_to_a_person_once_a_payment(books: Books) -> None:
    """F34."""
    operation = books.refund()
    lost = books.line(None, -4000, kind=LineKind.DISPUTE, payment_ref=operation.payment_ref)
    won = books.line(None, 4000, kind=LineKind.DISPUTE, payment_ref=operation.payment_ref)
    books.take(books.line(operation), lost, won)
    assert books.cases() == ["DISPUTED"] and books.case("DISPUTED").order_ref == operation.order_ref
    assert books.classes() == {"MATCHED": 1, "DISPUTED": 2}


def test_other_bookings_of_the_account_are_nobodys_business(books: Books) -> None:
    """A charge, a payout or a provider's bill is counted and otherwise left alone."""
    books.take(books.line(None, 9900, kind=LineKind.OTHER), books.line(None, -120, kind=LineKind.OTHER))
    assert books.classes() == {"OTHER": 2} and books.cases() == [] and books.overview().stops == ()


def test_an_operation_that_is_done_and_on_no_statement_becomes_a_case_after_the_sla(books: Books) -> None:
    """TIMING, then MISSING_AT_PROVIDER (F42); never before, and told when the line comes at last."""
    operation = books.refund()
    books.take()
    shown, = books.overview().operations
    assert (shown.operation, shown.class_name, shown.case) == (operation, "TIMING", None)
    books.next_day(5)
    for ahead in range(1, 4):
        books.take(day=books.days_after(ahead))
    books.again()
    case = books.case("MISSING_AT_PROVIDER")
    assert (case.operation, case.blocks, books.task(operation).attention) == (
        operation, "nothing", "MISSING_AT_PROVIDER")
    assert figures(operation) == ("succeeded", 2500, 0) and books.overview().stops == ()
    books.take(books.line(operation))
    books.again()
    assert books.classes() == {"MATCHED": 1} and books.cases() == ["MISSING_AT_PROVIDER"]
    assert [e.kind for e in case.entries.all()] == ["line_came"]


def test_nothing_counts_as_missing_while_a_day_is_not_whole(books: Books) -> None:
    """A day within the SLA that is not there, or does not add up, may hold the line."""
    books.refund()
    books.next_day(5)
    for ahead in range(4):
        trouble = "Page 2 was not read." if ahead == 2 else ""
        books.take(day=books.days_after(ahead), trouble=trouble)
    books.again()
    assert books.cases() == [] and books.overview().operations[0].class_name == "TIMING"
    books.take(day=books.days_after(2))
    books.again()
    assert books.cases() == ["MISSING_AT_PROVIDER"]


def test_what_comes_back_of_a_refund_made_outside_is_a_matter_of_its_own(books: Books) -> None:
    """The first case may be closed by then, and the money is here again."""
    out, back = books.line(None, -700, provider_ref="re_out"), books.line(None, 700, provider_ref="re_out")
    books.take(out, back)
    assert books.cases() == ["MISSING_HERE", "MISSING_HERE"] and books.classes() == {"MISSING_HERE": 2}


def test_a_missing_refund_that_was_explained_is_not_opened_again(books: Books) -> None:
    books.refund()
    books.next_day(5)
    for ahead in range(4):
        books.take(day=books.days_after(ahead))
    books.again()
    case = books.case("MISSING_AT_PROVIDER")
    assert close(case.id, tenant_id=case.tenant_id, outcome="explained", actor="person", now=calendar.now())
    books.again()
    assert Case.objects.count() == 1 and books.overview().stops == ()
    assert books.close().totals["cases"] == []


def test_a_case_that_a_person_has_closed_is_not_opened_again(books: Books) -> None:
    """What was explained once stays explained, however often the day is compared."""
    line = books.line(None, -100)
    books.take(line)
    case = books.case("MISSING_HERE")
    assert close(case.id, tenant_id=case.tenant_id, outcome="explained", actor="person", now=calendar.now())
    for _ in range(2):
        books.again()
    assert Case.objects.count() == 1 and books.overview().stops == ()
