"""Finding a refund, and the proof that there is none: all pages read and every refunded unit named."""

from __future__ import annotations

from uuid import uuid4

import pytest

from runtime_app.adapters.payments.types import (
    Absent,
    Deadline,
    FindResult,
    Found,
    Inconclusive,
    Mismatch,
    OutcomeUnknown,
)
from runtime_app.money import Money
from tests.adapters.providers import Refunding, StripeAtSandbox


def refunded(stripe: StripeAtSandbox, *amounts: int, captured: int = 100_000) -> str:
    payment = stripe.open_payment(captured)
    for amount in amounts:
        Refunding(stripe, payment, Money(amount, "USD")).send()
    return payment


def look(stripe: StripeAtSandbox, payment_ref: str, seconds: float = 20.0, currency: str = "USD") -> FindResult:
    return stripe.payments.find_refunds(
        stripe.account, operation_id=uuid4(), payment_ref=payment_ref, currency=currency,
        deadline=Deadline.after(seconds),
    )


def test_an_old_refund_is_found_behind_two_pages_of_newer_ones(stripe: StripeAtSandbox) -> None:
    ours = Refunding(stripe, stripe.open_payment(), Money(7, "USD"))
    ours.send()
    for _ in range(205):
        stripe.refund_outside(ours.payment_ref, 1)
    found = ours.find()
    assert isinstance(found, Found) and len(found.refunds) == 1
    assert (found.seen.pages, found.seen.complete) == (3, True)
    lists = [r["path"] for r in stripe.sandbox.requests(payment_ref=ours.payment_ref, method="GET")]
    assert len(lists) == 3 and all("limit=100" in path for path in lists)


def test_absence_is_proved_over_all_pages_and_the_total(stripe: StripeAtSandbox) -> None:
    payment = refunded(stripe, 5)
    for _ in range(120):
        stripe.refund_outside(payment, 1)
    absent = look(stripe, payment)
    assert isinstance(absent, Absent)
    assert (absent.seen.pages, absent.seen.consistency, len(absent.lookalikes)) == (2, "strong", 120)


def test_two_refunds_under_our_id_are_both_told(stripe: StripeAtSandbox) -> None:
    """money.md 3.3 row 8."""
    ours = Refunding(stripe, stripe.open_payment(), Money(7, "USD"))
    stripe.sandbox.fault("F32", match={"payment_ref": ours.payment_ref})
    ours.send()
    found = ours.find()
    assert isinstance(found, Found) and len(found.refunds) == 2


@pytest.mark.parametrize(("code", "more"), [
    ("F25", {"seconds": 3600}), ("F26", {"lie": "has_more"}), ("F26", {"lie": "lost_entry"}), ("F27", {"on": "list"}),
    ("F27", {"on": "payment"}), ("F28", {"on": "payment"}), ("F28", {"on": "list"}), ("F8", {"on": "list"}),
    ("F12", {"on": "list"}), ("F18", {"on": "payment"}), ("F2", {"on": "list"}), ("F6", {"on": "payment"}),
    ("F7", {"on": "list", "body": '{"object": "list", "has_more": false}'}),
    ("F7", {"on": "list", "body": '{"object": "list", "has_more": false, "data": []}'}),
    ("F7", {"on": "list", "body": '{"object": "list", "has_more": "no", "data": []}'}),
    ("F7", {"on": "payment", "body": "{}"}), ("F50", {}),
], ids=str)
def test_a_look_that_is_not_whole_proves_nothing(
    stripe: StripeAtSandbox, code: str, more: dict[str, object]
) -> None:
    """money.md 3.2: INCONCLUSIVE never counts as absent. Our refund of 5 is there all the time."""
    ours = Refunding(stripe, stripe.open_payment(), Money(5, "USD"))
    stripe.sandbox.fault("F4", match={"payment_ref": ours.payment_ref})
    assert isinstance(ours.send(), OutcomeUnknown)
    stripe.sandbox.fault(code, match={"payment_ref": ours.payment_ref}, **more)
    result = ours.find() if more.get("on") != "payment" else look(stripe, ours.payment_ref)
    assert isinstance(result, Inconclusive), result
    assert not result.seen.complete
    stripe.sandbox.clear_faults()
    assert isinstance(ours.find(), Found)


def nameless(stripe: StripeAtSandbox) -> Refunding:
    """A refund of ours that the provider made without the metadata."""
    ours = Refunding(stripe, stripe.open_payment(), Money(5, "USD"))
    stripe.sandbox.fault("F31", match={"payment_ref": ours.payment_ref})
    assert isinstance(ours.send(), Mismatch)
    return ours


def asked(stripe: StripeAtSandbox) -> list[str]:
    return [r["path"].partition("?")[0] for r in stripe.sandbox.requests(method="GET")]


def test_a_refund_that_lost_its_name_is_found_by_the_key_that_made_it(stripe: StripeAtSandbox) -> None:
    """F31, money.md 3.2: the event carries our key."""
    ours = nameless(stripe)
    found = ours.find()
    assert isinstance(found, Found)
    assert [(r.amount.minor, r.operation_ref) for r in found.refunds] == [(5, str(ours.operation_id))]
    said, = found.seen.body["events"]
    assert (said["refund"], said["idempotency_key"]) == (found.refunds[0].ref, str(ours.operation_id))


def test_another_operation_does_not_find_a_nameless_refund_as_its_own(stripe: StripeAtSandbox) -> None:
    """money.md 3.2: same payment and amount without our id is a suggestion for a person only."""
    result = look(stripe, nameless(stripe).payment_ref)
    assert isinstance(result, Absent) and [r.amount.minor for r in result.lookalikes] == [5]


@pytest.mark.parametrize("code", ["F27", "F2", "F8", "F12"])
def test_events_that_are_not_answered_leave_it_open(stripe: StripeAtSandbox, code: str) -> None:
    ours = nameless(stripe)
    stripe.sandbox.fault(code, on="events")
    result = ours.find()
    assert isinstance(result, Inconclusive) and result.cause.startswith("the events by key")
    assert isinstance(ours.find(), Found)


def test_a_key_without_the_right_to_events_leaves_the_lookalike(stripe: StripeAtSandbox) -> None:
    ours = nameless(stripe)
    stripe.sandbox.fault("F18", on="events", status=403)
    assert isinstance(ours.find(), Absent)


def test_events_are_asked_for_only_where_a_refund_has_no_name(stripe: StripeAtSandbox) -> None:
    ours = Refunding(stripe, stripe.open_payment(), Money(5, "USD"))
    before = asked(stripe).count("/v1/events")
    ours.send()
    ours.find()
    look(stripe, ours.payment_ref)
    assert asked(stripe).count("/v1/events") == before
    stripe.refund_outside(ours.payment_ref, 1)
    look(stripe, ours.payment_ref)
    assert asked(stripe).count("/v1/events") > before


def test_another_currency_than_expected_proves_nothing(stripe: StripeAtSandbox) -> None:
    assert isinstance(look(stripe, refunded(stripe, 5), currency="EUR"), Inconclusive)


def test_an_unknown_payment_proves_nothing(stripe: StripeAtSandbox) -> None:
    assert isinstance(look(stripe, "pi_nowhere"), Inconclusive)


def test_nothing_is_asked_after_the_deadline(stripe: StripeAtSandbox) -> None:
    payment = refunded(stripe)
    result = look(stripe, payment, seconds=-1)
    assert isinstance(result, Inconclusive)
    assert stripe.sandbox.requests(payment_ref=payment) == []


def test_failed_refunds_count_for_nothing_in_the_sum(stripe: StripeAtSandbox) -> None:
    payment = stripe.open_payment()
    failing = Refunding(stripe, payment, Money(5, "USD"))
    stripe.goes_wrong("F21", payment, failed=True)
    failing.send()
    assert isinstance(look(stripe, payment), Absent)
