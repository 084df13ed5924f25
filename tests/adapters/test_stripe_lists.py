"""Lists of refunds, events by key, payments and single refunds: what Stripe could say, and what is made of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from runtime_app.adapters.payments.stripe import StripePayments
from runtime_app.adapters.payments.stripe_events import EVENTS_PAGES_MOST, Made, NoSuchEvent, made_under
from runtime_app.adapters.payments.stripe_evidence import Answer
from runtime_app.adapters.payments.stripe_lists import refund_page
from runtime_app.adapters.payments.stripe_payment import read_charge, read_intent
from runtime_app.adapters.payments.types import (
    Inconclusive,
    PaymentSnapshot,
    ProviderAccount,
    ProviderRefund,
    RefundPage,
    RefundStatus,
)
from runtime_app.money import Money
from tests.adapters.stripe_answers import answer, page, refusal

MADE = 1_900_000_000
REFUND: dict[str, Any] = {
    "id": "re_1", "object": "refund", "amount": 500, "currency": "usd", "payment_intent": "pi_1", "charge": "ch_1",
    "created": MADE, "status": "succeeded", "metadata": {"operation_id": "op-1"},
}
NAMELESS = [ProviderRefund(ref, None, "pi_1", Money(500, "USD"), RefundStatus.SUCCEEDED,
                           created_at=datetime.fromtimestamp(MADE, UTC)) for ref in ("re_1", "re_2")]


def paged(
    answered: Answer, *, payment: str | None = None, since: datetime | None = None, cursor: str | None = None
) -> Any:
    return refund_page(answered, payment_ref=payment, since=since, cursor=cursor)


def test_the_cursor_is_the_last_refund_while_there_is_more() -> None:
    told = paged(page([REFUND, REFUND | {"id": "re_0"}], more=True))
    assert isinstance(told, RefundPage) and told.next_cursor == "re_0"
    assert paged(page([REFUND])).next_cursor is None


def test_reading_ends_at_the_first_refund_that_is_too_old() -> None:
    since = datetime.fromtimestamp(MADE, UTC)
    told = paged(page([REFUND, REFUND | {"id": "re_0", "created": MADE - 1}], more=True), since=since)
    assert ([r.ref for r in told.refunds], told.next_cursor) == (["re_1"], None)


@pytest.mark.parametrize("data", [
    [REFUND | {"amount": "5"}], [REFUND | {"payment_intent": None, "charge": None}], ["re_1"], [None],
    [REFUND | {"metadata": None, "amount": None}], [REFUND | {"status": "weird"}],
], ids=str)
def test_a_refund_that_may_be_ours_and_cannot_be_read_stops_a_sweep(data: list[Any]) -> None:
    told = paged(page(data))
    assert isinstance(told, Inconclusive) and not told.seen.complete


def test_somebody_elses_refund_that_cannot_be_read_is_left_out_and_said() -> None:
    """An account may refund what has no payment, or in a currency that we do not know."""
    theirs = REFUND | {"id": "re_x", "metadata": {}, "payment_intent": None, "charge": None}
    told = paged(page([theirs, REFUND, theirs | {"payment_intent": "pi_2", "currency": "iqd"}], more=True))
    assert [r.ref for r in told.refunds] == ["re_1"]
    assert (told.next_cursor, told.seen.complete) == ("re_x", False)
    assert paged(page([REFUND])).seen.complete


def test_in_a_payments_own_list_nothing_is_left_out() -> None:
    """Absence is proved there, so that everything has to be readable and of this payment."""
    theirs = REFUND | {"metadata": {}, "amount": None}
    assert isinstance(paged(page([theirs]), payment="pi_1"), Inconclusive)
    assert isinstance(paged(page([REFUND]), payment="pi_2"), Inconclusive)
    assert isinstance(paged(page([REFUND]), payment="ch_1"), RefundPage)


@pytest.mark.parametrize("told", [
    page([], more=True), page([REFUND], more="yes"), page(None), refusal(500, "x"), refusal(404, "resource_missing"),
    answer(b"<html>", 502),
], ids=lambda a: str(a.exchange.content)[:40])
def test_a_page_that_is_none_proves_nothing(told: Answer) -> None:
    assert isinstance(paged(told), Inconclusive)


def test_a_cursor_that_does_not_move_ends_the_reading() -> None:
    assert isinstance(paged(page([REFUND], more=True), cursor="re_1"), Inconclusive)


def event(key: str | None = "op-1", refund: Any = "re_1", **changes: Any) -> dict[str, Any]:
    return {"id": "evt_1", "object": "event", "type": "refund.created",
            "request": {"id": "req_1", "idempotency_key": key}, "data": {"object": {"id": refund}}} | changes


def by_key(*pages: Answer, nameless: Sequence[ProviderRefund] = NAMELESS) -> Any:
    left = iter(pages)
    return made_under("op-1", nameless, lambda params: next(left))


def test_a_refund_whose_event_carries_our_key_is_ours() -> None:
    """F31, money.md 3.2."""
    made = by_key(page([event("op-2", "re_2"), event()]))
    assert isinstance(made, Made) and made.refs == {"re_1"}


def test_every_refund_made_under_our_key_is_named() -> None:
    """F32: money.md 3.3 row 8, although both lost their metadata."""
    made = by_key(page([event(refund="re_2")], more=True), page([event(id="evt_0")]))
    assert isinstance(made, Made) and made.refs == {"re_1", "re_2"}


@pytest.mark.parametrize("strange", [
    event("op-2"), event(None), event(refund="re_9"), event(refund=None), event(refund=["re_1"]), event(request=None),
    event(request="op-1"), event(data=None), event(data={"object": "re_1"}), event(type="refund.updated"), "evt_1",
    None, [],
], ids=str)
def test_an_event_that_does_not_say_so_names_nothing(strange: Any) -> None:
    assert isinstance(by_key(page([strange])), NoSuchEvent)


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_a_server_without_events_changes_nothing(status: int) -> None:
    assert isinstance(by_key(refusal(status, "x")), NoSuchEvent)


@pytest.mark.parametrize("told", [refusal(500, "x"), answer(b"", 404), page(None), refusal(429, "rate_limit")],
                         ids=lambda a: str(a.exchange.status))
def test_a_server_that_does_not_answer_leaves_it_open(told: Answer) -> None:
    assert isinstance(by_key(told), Inconclusive)
    assert isinstance(by_key(page([event()], more=True), told), Made)


def test_events_without_an_end_end() -> None:
    pages = [page([event("op-9", id=f"evt_{n}")], more=True) for n in range(EVENTS_PAGES_MOST)]
    assert isinstance(by_key(*pages), NoSuchEvent)


def test_only_the_events_of_that_time_are_asked_for() -> None:
    asked: list[dict[str, object]] = []

    def answered(params: dict[str, object]) -> Answer:
        asked.append(params)
        return page([event("op-9", id="evt_7")], more=len(asked) < 2)

    made_under("op-1", NAMELESS, answered)
    first = {"type": "refund.created", "limit": 100, "created[gte]": MADE - 600, "created[lte]": MADE + 600}
    assert asked == [first, first | {"starting_after": "evt_7"}]


CHARGE: dict[str, Any] = {
    "id": "ch_1", "object": "charge", "currency": "usd", "amount_captured": 900, "amount_refunded": 100,
    "payment_intent": None, "livemode": False, "disputed": False,
}
INTENT: dict[str, Any] = {
    "id": "pi_1", "object": "payment_intent", "currency": "usd", "amount_received": 900, "livemode": False,
    "latest_charge": CHARGE | {"payment_intent": "pi_1"},
}


def test_a_payment_and_a_charge_tell_the_same() -> None:
    for told in (read_intent(answer(INTENT), "pi_1"), read_charge(answer(CHARGE), "ch_1")):
        assert isinstance(told, PaymentSnapshot)
        assert (told.captured, told.refunded, told.live, told.disputed) == (
            Money(900, "USD"), Money(100, "USD"), False, False)


@pytest.mark.parametrize(("intent", "charge", "live"), [(True, True, True), (False, None, False), (None, True, True),
                                                        (None, None, None), ("true", 1, None)])
def test_the_mode_is_what_the_provider_says(intent: Any, charge: Any, live: bool | None) -> None:
    """F49: the caller decides; the adapter only tells."""
    body = INTENT | {"livemode": intent, "latest_charge": CHARGE | {"livemode": charge}}
    told = read_intent(answer(body), "pi_1")
    assert isinstance(told, PaymentSnapshot) and told.live is live


def test_a_payment_of_both_modes_proves_nothing() -> None:
    body = INTENT | {"latest_charge": CHARGE | {"livemode": True}}
    assert isinstance(read_intent(answer(body), "pi_1"), Inconclusive)


def test_a_dispute_is_told() -> None:
    """F34."""
    body = INTENT | {"latest_charge": CHARGE | {"disputed": True}}
    told = read_intent(answer(body), "pi_1")
    assert isinstance(told, PaymentSnapshot) and told.disputed


def test_a_charge_that_has_an_intent_goes_by_the_intents_name_only() -> None:
    """One payment under two names could be refunded twice: each balance would know one of them."""
    told = read_charge(answer(CHARGE | {"payment_intent": "pi_1"}), "ch_1")
    assert isinstance(told, Inconclusive) and "pi_1" in told.cause


@pytest.mark.parametrize("change", [
    {"id": "ch_2"}, {"amount_captured": None}, {"amount_captured": -1}, {"amount_refunded": "100"}, {"currency": "zzz"},
    {"amount_refunded": -5}, {"amount_captured": True},
], ids=str)
def test_a_charge_that_does_not_add_up_proves_nothing(change: dict[str, Any]) -> None:
    assert isinstance(read_charge(answer(CHARGE | change), "ch_1"), Inconclusive)


@pytest.mark.parametrize(("changes", "names"), [
    ({}, set()), ({"settings": {"created_filter": "off"}}, set()), ({"settings": {"created_filter": "no"}},
                                                                    {"created_filter"}),
    ({"settings": {"colour": "blue"}}, {"colour"}), ({"time_zone": "Mars/Base"}, {"time_zone"}),
    ({"api_key": "sk_live_x"}, {"api_key"}), ({"api_key": "rk_live_x"}, {"api_key"}), ({"mode": "live"}, {"api_key"}),
    ({"mode": "live", "api_key": "sk_live_x"}, set()),
], ids=str)
def test_what_is_wrong_with_an_account_is_named(changes: dict[str, Any], names: set[str]) -> None:
    """F49: a key of the other mode is refused before anything is sent with it."""
    fields: dict[str, Any] = {"id": "a", "provider": "stripe", "api_key": "sk_test_x"} | changes
    wrong = StripePayments(connect_timeout=1, read_timeout=1).check_account(ProviderAccount(**fields))
    assert set(wrong) == names
    assert all(sentence.endswith(".") and "sk_" not in sentence for sentence in wrong.values())
