"""Each fault of the sandbox, what the adapter makes of it, and how many refunds were really made.

This is the classification rule of money.md section 2 as a table. Each request is sent once: the adapter never tries
again by itself, which the sandbox's own log shows.
"""

from __future__ import annotations

from typing import Any

import pytest

from runtime_app.adapters.payments.stripe import StripePayments
from runtime_app.adapters.payments.types import (
    Declined,
    KeyConflict,
    KeyInProgress,
    Mismatch,
    NotSent,
    OutcomeUnknown,
    Pending,
    Succeeded,
    Throttled,
)
from runtime_app.money import Money
from tests.adapters.providers import Refunding, StripeAtSandbox
from tests.sandbox_process import SandboxProcess

BEFORE, AFTER = {"when": "before"}, {"when": "after"}
TABLE: list[tuple[str, dict[str, Any], type, int]] = [
    ("F2", {"how": "close"}, OutcomeUnknown, 0),
    ("F2", {"how": "reset"}, OutcomeUnknown, 0),
    ("F3", {"seconds": 20}, OutcomeUnknown, 0),
    ("F4", {"how": "close"}, OutcomeUnknown, 1),
    ("F4", {"how": "reset"}, OutcomeUnknown, 1),
    ("F5", {"seconds": 20}, OutcomeUnknown, 1),
    ("F6", BEFORE, OutcomeUnknown, 0),
    ("F6", AFTER, OutcomeUnknown, 1),
    ("F7", BEFORE, OutcomeUnknown, 0),
    ("F7", AFTER, OutcomeUnknown, 1),
    ("F7", AFTER | {"body": "{}"}, OutcomeUnknown, 1),
    ("F7", AFTER | {"body": '{"object": "refund", "id": "re_1", "amount": NaN}'}, OutcomeUnknown, 1),
    ("F7", AFTER | {"body": "[" * 100_000}, OutcomeUnknown, 1),
    ("F8", BEFORE | {"status": 502}, OutcomeUnknown, 0),
    ("F8", AFTER | {"status": 503}, OutcomeUnknown, 1),
    ("F9", {}, Succeeded, 1),
    ("F10", {}, OutcomeUnknown, 0),
    ("F11", {}, OutcomeUnknown, 1),
    ("F12", {}, Throttled, 0),
    ("F13", {}, KeyInProgress, 0),
    ("F13", {"code": "lock_timeout"}, OutcomeUnknown, 0),
    ("F14", {}, Succeeded, 1),
    ("F15", BEFORE, KeyConflict, 0),
    ("F15", AFTER, KeyConflict, 1),
    ("F18", {"status": 401}, NotSent, 0),
    ("F18", {"status": 403}, NotSent, 0),
    ("F19", BEFORE, Declined, 0),
    ("F19", BEFORE | {"code": "amount_too_large"}, Declined, 0),
    ("F20", {"seconds": 60}, OutcomeUnknown, 0),
    ("F21", {}, Pending, 1),
    ("F21", {"seconds": 0, "then": "failed"}, Declined, 0),
    ("F22", {}, Pending, 1),
    ("F23", {}, Succeeded, 1),
    ("F24", {}, Pending, 1),
    ("F29", {}, Mismatch, 1),
    ("F29", {"currency": "EUR"}, Mismatch, 1),
    ("F31", {}, Mismatch, 1),
    ("F32", {}, Succeeded, 2),
    ("F50", {"how": "close"}, OutcomeUnknown, 0),
    ("F50", {"how": "503"}, OutcomeUnknown, 0),
]


@pytest.fixture
def impatient(sandbox: SandboxProcess) -> StripeAtSandbox:
    """The adapter with a short wait, so that a silent provider does not hold up the tests."""
    return StripeAtSandbox(sandbox, StripePayments(connect_timeout=5.0, read_timeout=0.4))


@pytest.mark.parametrize(("code", "more", "expected", "made"), TABLE, ids=lambda v: getattr(v, "__name__", str(v)[:40]))
def test_a_fault_on_the_first_send(
    impatient: StripeAtSandbox, code: str, more: dict[str, Any], expected: type, made: int
) -> None:
    """M23: nothing but evidence decides; whatever is not proved either way is unknown."""
    patient = expected is not OutcomeUnknown
    refund = Refunding(StripeAtSandbox(impatient.sandbox) if patient else impatient,
                       impatient.open_payment(), Money(2500, "USD"))
    impatient.sandbox.fault(code, match={"payment_ref": refund.payment_ref}, **more)
    result = refund.send()
    assert type(result) is expected, result
    assert len(impatient.moved(refund.payment_ref)) == made
    sends = impatient.sandbox.requests(payment_ref=refund.payment_ref, method="POST")
    assert len(sends) == 1, "the adapter sent again by itself"


def test_a_refused_connection_is_proved_not_sent(impatient: StripeAtSandbox) -> None:
    refund = Refunding(impatient, impatient.open_payment(), Money(2500, "USD"))
    impatient.sandbox.fault("F1")
    assert isinstance(refund.send(), NotSent)
    impatient.sandbox.clear_faults()
    assert impatient.sandbox.requests(payment_ref=refund.payment_ref) == []
    assert isinstance(refund.send(), Succeeded)


@pytest.mark.parametrize("code", ["charge_already_refunded", "amount_too_large"])
def test_an_over_refund_answered_after_the_money_moved_is_unknown_on_a_resend(
    stripe: StripeAtSandbox, code: str
) -> None:
    """money.md 2, traps."""
    refund = Refunding(stripe, stripe.open_payment(), Money(2500, "USD"))
    stripe.sandbox.fault("F19", match={"payment_ref": refund.payment_ref}, when="after", code=code)
    result = refund.send(resend=True)
    assert isinstance(result, OutcomeUnknown) and result.cause == code
    replayed = refund.send(resend=True)
    assert isinstance(replayed, OutcomeUnknown) and replayed.seen.replayed
    assert len(stripe.moved(refund.payment_ref)) == 1


def test_a_refund_on_another_payment_is_a_mismatch(stripe: StripeAtSandbox) -> None:
    refund = Refunding(stripe, stripe.open_payment(), Money(2500, "USD"))
    other = stripe.open_payment()
    stripe.sandbox.fault("F30", match={"payment_ref": refund.payment_ref}, payment_ref=other)
    result = refund.send()
    assert isinstance(result, Mismatch) and result.differs == ("payment",)
    assert len(stripe.moved(other)) == 1


def test_what_differs_is_named(stripe: StripeAtSandbox) -> None:
    for code, more, differs in (("F29", {"amount_minor": 7}, "amount"), ("F29", {"currency": "EUR"}, "currency"),
                                ("F31", {}, "operation")):
        refund = Refunding(stripe, stripe.open_payment(), Money(2500, "USD"))
        stripe.sandbox.fault(code, match={"payment_ref": refund.payment_ref}, **more)
        result = refund.send()
        assert isinstance(result, Mismatch) and result.differs == (differs,)


def test_a_forgotten_key_pays_a_resend_again(stripe: StripeAtSandbox) -> None:
    """F16, F17: why a resend outside of the provider's promise is never made by the product."""
    for code, more in (("F16", {}), ("F17", {"mode": "ignored"})):
        refund = Refunding(stripe, stripe.open_payment(), Money(2500, "USD"))
        stripe.sandbox.fault(code, match={"payment_ref": refund.payment_ref}, **more)
        stripe.sandbox.fault("F4", match={"payment_ref": refund.payment_ref})
        assert isinstance(refund.send(), OutcomeUnknown)
        assert isinstance(refund.send(resend=True), Succeeded)
        assert len(stripe.moved(refund.payment_ref)) == 2
        stripe.sandbox.clear_faults()
