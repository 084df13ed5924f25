"""Asking for a refund at the form."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from django.db import connection

from runtime_app import members
from runtime_app.models import Task, User
from tests.console.conftest import Visitor
from tests.world import PASSWORD, World

Visit = Callable[[User | None], Visitor]


def _form(browser: Visitor, order: str, amount: str = "3.92", **typed: str) -> dict[str, str]:
    hidden = browser.form(f"/tasks/new/?order_ref={order}", "/tasks/new/")
    return {**hidden, "payment_ref": f"pi_{order}", "amount": amount, "reason": "one item came back", **typed}


def test_one_form_token_asks_once_and_an_old_balance_is_refused(world: World, visit: Visit) -> None:
    """C01: the same form twice at the same moment and once more later is one task; a page that shows an old balance
    is refused until it is read again and confirmed."""
    order = world.order(10000)
    first, other = visit(world.rita), visit(members.add_person(world.amber, "remy", PASSWORD, ["requester"]))
    form, old = _form(first, order), _form(other, order)
    answers: list[Any] = []

    def send() -> None:
        answers.append(first.client.post("/tasks/new/", form))
        connection.close()

    threads = [threading.Thread(target=send) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    task = Task.objects.get()
    assert {(a.status_code, a["Location"]) for a in answers} == {(302, f"/tasks/{task.id}/")}
    world.finish(task)
    later = first.send("/tasks/new/", form)
    assert (later.status_code, later["Location"]) == (302, f"/tasks/{task.id}/")
    refused = other.send("/tasks/new/", old)
    assert refused.status_code == 409
    text = refused.content.decode()
    assert "The refundable amount has changed" in text and "96.08" in text and "one item came back" in text
    assert Task.objects.count() == 1 and [r["amount_minor"] for r in world.effects(order)] == [392]
    confirmed = other.send("/tasks/new/", _form(other, order))
    assert confirmed.status_code == 302 and Task.objects.count() == 2


def test_what_is_asked_and_not_yet_held_counts_as_a_change_too(world: World, visit: Visit) -> None:
    """C01: the first request still waits for an approver and holds nothing; the second page is old all the same."""
    order = world.order(10000)
    rita = visit(world.rita)
    old = _form(rita, order, "60.00")
    world.approval(world.ask(order, 6000))
    refused = rita.send("/tasks/new/", old)
    assert refused.status_code == 409 and b"60.00 USD more is asked for already" in refused.content


def test_amounts_are_typed_in_the_currencys_own_decimals(world: World, visit: Visit) -> None:
    """C41: what is typed is what is stored, exactly, and what is shown."""
    rita = visit(world.rita)
    for currency, typed, minor, shown in (
        ("JPY", "500", 500, "500 JPY"), ("KWD", "1.250", 1250, "1.250 KWD"), ("USD", "5.00", 500, "5.00 USD"),
        ("USD", "1234", 123400, "1,234.00 USD"), ("BHD", "0.010", 10, "0.010 BHD"),
    ):  # fmt: skip
        order = world.order(1_000_000, currency=currency)
        assert rita.send("/tasks/new/", _form(rita, order, typed)).status_code == 302
        task = Task.objects.get(order_ref=order)
        assert task.amount_minor == minor and f"refund of {shown} on order" in rita.text(f"/tasks/{task.id}/")


def test_amounts_that_mean_nothing_exact_are_refused_beside_the_field(world: World, visit: Visit) -> None:
    """C43, M07: nothing is stored."""
    rita = visit(world.rita)
    for currency, values in (
        ("JPY", ["500.5"]),
        ("KWD", ["1.2345"]),
        ("USD", ["1.999", "0", "-5", "1e2", "1_000", "\uff11\uff12", "5\n", "true", "", "9" * 400, "\x00", "1,5"]),
        ("EUR", ["100.01"]),
    ):
        form = _form(rita, world.order(10_000, currency=currency))
        for typed in values:
            answer = rita.send("/tasks/new/", {**form, "amount": typed})
            assert answer.status_code == 422 and 'id="id_amount_error"' in answer.content.decode(), (currency, typed)
    assert not Task.objects.exists()


def test_orders_that_only_look_like_orders_are_refused(world: World, visit: Visit) -> None:
    """C46: one written rule at the edge; look-alikes are refused before anything is read."""
    rita = visit(world.rita)
    for order_ref in ("cafe\u0301-1", "caf\u00e9-1", "ORD\u200b-1", "ORD-1 x", "\u043eRD-1", "ORD-1\u200f", "\x00",
                      "x" * 5000, "", " "):  # fmt: skip
        answer = rita.client.get("/tasks/new/", {"order_ref": order_ref})
        assert answer.status_code == 422 and 'id="id_order_ref_error"' in answer.content.decode(), order_ref


def test_an_order_that_is_not_there_and_an_order_system_that_is_away(world: World, visit: Visit) -> None:
    """The first is told beside the field, the second as a page that says to try again."""
    rita = visit(world.rita)
    unknown = rita.client.get("/tasks/new/", {"order_ref": "ORD-NOWHERE"})
    assert unknown.status_code == 422 and b"has no order ORD-NOWHERE" in unknown.content
    world.sandbox.fault("F8", on="orders", times=5)
    try:
        away = rita.client.get("/tasks/new/", {"order_ref": "ORD-NOWHERE"})
    finally:
        world.sandbox.clear_faults()
    assert away.status_code == 503 and b"does not answer right now" in away.content


def test_only_who_may_ask_sees_the_form(world: World, visit: Visit) -> None:
    """M29: hiding the button is not the check."""
    for person in (world.ada, world.sam, world.ava):
        assert visit(person).get("/tasks/new/").status_code == 403
    ada = visit(world.ada)
    token = ada.form("/", "/accounts/logout/")
    assert ada.send("/tasks/new/", {**token, "order_ref": world.order()}).status_code == 403


def test_input_with_hostile_characters_is_refused_and_a_reason_is_shown_as_text(world: World, visit: Visit) -> None:
    """S8: markup is text; controls and lone surrogates are refused."""
    order = world.order(10_000)
    rita = visit(world.rita)
    for reason in ("a\x00b", "rtl \u202e txt", "\x1b[31m", "x" * 501):
        answer = rita.send("/tasks/new/", _form(rita, order, reason=reason))
        assert answer.status_code == 422 and not Task.objects.exists(), reason
    markup = "<script>alert(1)</script>"
    assert rita.send("/tasks/new/", _form(rita, order, reason=markup)).status_code == 302
    text = rita.text(f"/tasks/{Task.objects.get().id}/")
    assert markup not in text and "&lt;script&gt;" in text
