"""A day of Stripe's balance transactions without a network: pages, totals, kinds, exchanged money, hostile lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from runtime_app.adapters.payments.days import day_window, known_zone
from runtime_app.adapters.payments.stripe_evidence import Answer
from runtime_app.adapters.payments.stripe_lists import PAGES_MOST
from runtime_app.adapters.payments.stripe_statement import day_params, read_day
from runtime_app.adapters.payments.types import BadStatement, Inconclusive, LineKind, Statement
from runtime_app.money import Money
from tests.adapters.stripe_answers import answer, page, refusal

DAY, ZONE = date(2030, 3, 1), ZoneInfo("UTC")
NOON = int(datetime(2030, 3, 1, 12, tzinfo=UTC).timestamp())
REFUND: dict[str, Any] = {
    "id": "re_1", "object": "refund", "amount": 500, "currency": "usd", "payment_intent": "pi_1", "charge": "ch_1",
    "metadata": {"operation_id": "op-1"},
}
LINE: dict[str, Any] = {
    "id": "txn_1", "object": "balance_transaction", "type": "refund", "amount": -500, "currency": "usd", "fee": 0,
    "net": -500, "created": NOON, "available_on": NOON + 86400, "source": REFUND, "reporting_category": "refund",
}


def numbered(*numbers: int, created: int = NOON) -> list[dict[str, Any]]:
    return [LINE | {"id": f"txn_{n}", "created": created} for n in numbers]


def read(*pages: Answer, filtered: bool = True, zone: ZoneInfo = ZONE) -> Any:
    """The day as these pages tell it; more pages than there are must not be asked for."""
    left = iter(pages)
    return read_day(lambda after: next(left), DAY, zone, filtered=filtered)


def read_line(**changes: Any) -> Any:
    told = read(page([LINE | changes]))
    return told.lines[0] if isinstance(told, Statement) else told


def test_a_line_tells_the_refund_that_it_books() -> None:
    line = read_line()
    assert (line.ref, line.kind, line.amount, line.provider_ref, line.our_ref, line.payment_ref) == (
        "txn_1", LineKind.REFUND, Money(-500, "USD"), "re_1", "op-1", "pi_1")
    assert (line.occurred_at, line.settled_on, line.fee, line.booked, line.live) == (
        datetime(2030, 3, 1, 12, tzinfo=UTC), date(2030, 3, 2), None, None, None)


@pytest.mark.parametrize(("kind", "category", "expected"), [
    ("refund", "refund", LineKind.REFUND), ("payment_refund", "refund", LineKind.REFUND),
    ("refund_failure", "refund_failure", LineKind.REFUND_FAILED),
    ("payment_failure_refund", "refund_failure", LineKind.REFUND_FAILED), ("dispute", "dispute", LineKind.DISPUTE),
    ("adjustment", "dispute", LineKind.DISPUTE), ("adjustment", "dispute_reversal", LineKind.DISPUTE),
    ("adjustment", "other_adjustment", LineKind.OTHER), ("charge", "charge", LineKind.OTHER),
    ("payout", "payout", LineKind.OTHER), ("something_new", "something_new", LineKind.OTHER),
])
def test_the_kinds_of_balance_transactions(kind: str, category: str, expected: LineKind) -> None:
    assert read_line(type=kind, reporting_category=category).kind is expected


def test_a_source_that_is_not_expanded_still_has_its_name() -> None:
    line = read_line(source="re_9")
    assert (line.provider_ref, line.our_ref, line.payment_ref) == ("re_9", None, None)
    assert read_line(source=None).provider_ref is None


def test_a_fee_and_a_charges_mode_are_told() -> None:
    assert read_line(fee=7).fee == Money(7, "USD")
    assert read_line(source={"id": "ch_1", "object": "charge", "livemode": True}).live is True


def test_a_refund_of_a_charge_names_the_charge() -> None:
    assert read_line(source=REFUND | {"payment_intent": None}).payment_ref == "ch_1"


def test_exchanged_money_is_told_in_the_refunds_own_currency() -> None:
    """money.md 3.5, FEE_OR_FX: the gross is comparable with the operation; what was booked stands beside it."""
    line = read_line(source=REFUND | {"amount": 45000, "currency": "jpy"}, amount=-310, exchange_rate=0.0069)
    assert (line.amount, line.booked) == (Money(-45000, "JPY"), Money(-310, "USD"))
    back = read_line(source=REFUND | {"amount": 9, "currency": "eur"}, amount=10, exchange_rate=1.1)
    assert (back.amount, back.booked) == (Money(9, "EUR"), Money(10, "USD"))


def test_another_currency_without_a_rate_is_left_to_be_seen() -> None:
    line = read_line(source=REFUND | {"currency": "eur"}, exchange_rate=None)
    assert (line.amount, line.booked) == (Money(-500, "USD"), None)


def test_units_are_stripes() -> None:
    """C41: ISK is counted in hundredths there, MGA in whole units."""
    assert read_line(amount=-2500, currency="isk", source=None).amount == Money(-25, "ISK")
    assert read_line(amount=-25, currency="mga", source=None).amount == Money(-2500, "MGA")


@pytest.mark.parametrize("change", [
    {"object": "charge"}, {"id": None}, {"id": "txn\x00"}, {"id": ["txn_1"]}, {"amount": "500"}, {"amount": -5.0},
    {"amount": True}, {"amount": None}, {"amount": 10**30}, {"currency": "zzz"}, {"currency": None}, {"created": None},
    {"created": "now"}, {"created": -1}, {"created": 10**18}, {"fee": "1"}, {"type": None}, {"type": 5},
    {"amount": -150, "currency": "isk"}, {"amount": -1000, "currency": "iqd"},
], ids=str)
def test_a_line_that_cannot_be_read_refuses_the_whole(change: dict[str, Any]) -> None:
    """Nothing of it counts: a statement is never half read."""
    told = read(page([*numbered(5, 6), LINE | change]))
    assert isinstance(told, BadStatement) and told.why.endswith(".")


@pytest.mark.parametrize("data", [["txn_1"], [None], [[]], [5]], ids=str)
def test_a_line_that_is_no_object_refuses_the_whole(data: list[Any]) -> None:
    assert isinstance(read(page(data)), BadStatement)


@pytest.mark.parametrize("first", [
    answer({"object": "list", "data": [], "has_more": "no"}), answer({"object": "charge"}), answer(b"<html>", 502),
    refusal(404, "resource_missing"), refusal(401, "x"), answer(b"[]"), page({"0": LINE}), page([], more=True),
], ids=lambda a: str(a.exchange.content)[:40])
def test_a_first_page_that_fails_says_nothing(first: Answer) -> None:
    """F47: a day that is not available is not a day without business."""
    told = read(first)
    assert isinstance(told, Inconclusive) and not told.seen.complete


def trouble(*pages: Answer) -> str:
    told = read(*pages)
    assert isinstance(told, Statement) and told.seen is not None
    assert told.seen.complete == (told.trouble == "")
    return told.trouble


def test_pages_are_read_to_the_end() -> None:
    told = read(page(numbered(4, 3), more=True, total_count=4), page(numbered(2, 1), total_count=4))
    assert [line.ref for line in told.lines] == ["txn_4", "txn_3", "txn_2", "txn_1"]
    assert (told.count_told, told.trouble, told.source, told.seen.pages) == (4, "", "list", 2)


def test_the_next_page_is_asked_for_after_the_last_line() -> None:
    asked: list[str | None] = []

    def next_page(after: str | None) -> Answer:
        asked.append(after)
        return page(numbered(2, 1), more=True) if after is None else page(numbered(0))

    read_day(next_page, DAY, ZONE, filtered=True)
    assert asked == [None, "txn_1"]


def test_a_page_that_fails_later_leaves_the_day_incomplete() -> None:
    """money.md 3.5: completeness first."""
    assert "Page 2 was not read: 500" in trouble(
        page(numbered(2, 1), more=True), answer({"error": {"type": "api_error", "message": "x"}}, 500))


def test_a_total_that_differs_leaves_the_day_incomplete() -> None:
    """F42, F46."""
    assert "counts 3 lines and lists 2" in trouble(page(numbered(2, 1), total_count=3))
    assert "counts 0 lines and lists 1" in trouble(page(numbered(1), total_count=0))
    assert trouble(page(numbered(1), total_count=1)) == trouble(page(numbered(1))) == ""


def test_one_line_told_twice_is_the_same_line() -> None:
    """F44: it is kept as it was told, and counts once; the ingest takes it once."""
    assert trouble(page(numbered(1, 1), total_count=1)) == trouble(page(numbered(1, 1), total_count=2)) == ""


def test_two_lines_of_one_reference_that_differ_are_trouble() -> None:
    assert "one reference and differ" in trouble(page([LINE, LINE | {"amount": -501}]))


def test_pages_that_go_in_a_circle_end() -> None:
    assert "Page 2 repeats" in trouble(page(numbered(2, 1), more=True), page(numbered(2, 1), more=True))


def test_a_day_without_an_end_ends() -> None:
    pages = [page(numbered(n), more=True) for n in range(PAGES_MOST + 5)]
    assert f"more than {PAGES_MOST} pages" in trouble(*pages)


@pytest.mark.parametrize("created", [NOON - 86400, NOON + 86400, 0])
def test_a_line_of_another_day_is_kept_and_said(created: int) -> None:
    assert "txn_7 is of another day" in trouble(page(numbered(7, created=created)))


def at(clock: str) -> int:
    return int(datetime.fromisoformat(f"2030-03-01T{clock}+00:00").timestamp())


def test_a_server_that_cannot_filter_is_read_back_to_the_days_beginning() -> None:
    """localstripe and the like: today's lines are passed over, and reading stops at the first older one."""
    told = read(
        page([*numbered(9, 8, created=NOON + 86400), *numbered(7, created=at("23:59:59"))], more=True, total_count=90),
        page([*numbered(6, created=at("00:00:00")), *numbered(5, created=at("00:00:00") - 1)], more=True),
        filtered=False,
    )
    assert [line.ref for line in told.lines] == ["txn_7", "txn_6"]
    assert (told.count_told, told.trouble, told.seen.pages) == (None, "", 2)


@pytest.mark.parametrize(("zone", "day", "hours"), [
    ("UTC", date(2030, 3, 1), 24), ("Europe/Berlin", date(2030, 3, 31), 23), ("Europe/Berlin", date(2030, 10, 27), 25),
    ("Pacific/Kiritimati", date(2030, 1, 1), 24), ("America/Sao_Paulo", date(2018, 11, 4), 23),
])
def test_a_day_has_as_many_hours_as_its_zone_gives_it(zone: str, day: date, hours: int) -> None:
    """F48: the days of a zone follow each other without a gap or an overlap, when clocks change too."""
    start, end = day_window(day, ZoneInfo(zone))
    assert (end - start) == timedelta(hours=hours)
    assert day_window(day + timedelta(1), ZoneInfo(zone))[0] == end


@pytest.mark.parametrize("name", ["", "Nowhere", "../etc/passwd", "/etc/passwd", "Europe", "a\0b"])
def test_a_zone_that_is_none_is_known_as_such(name: str) -> None:
    assert known_zone(name) is None


def test_what_is_asked_for_is_exactly_the_day_with_its_sources() -> None:
    asked = day_params(DAY, ZoneInfo("America/New_York"), filtered=True)
    assert asked == {
        "limit": 100, "expand": ["data.source"], "include": ["total_count"],
        "created[gte]": at("05:00:00"), "created[lt]": at("05:00:00") + 86400,
    }
    assert day_params(DAY, ZONE, filtered=False) == {"limit": 100, "expand": ["data.source"]}


def test_the_digest_is_of_what_is_said_and_not_of_the_bytes() -> None:
    """Ingesting a day twice adds nothing, although the server's bodies differ in what does not count."""
    def digest(lines: Sequence[dict[str, Any]], **fields: Any) -> str:
        told = read(page(lines, **fields))
        assert isinstance(told, Statement)
        return told.sha256

    same = digest([LINE])
    assert digest([LINE | {"status": "available"}]) == same
    for changed in ({"amount": -501}, {"type": "dispute"}, {"created": NOON + 1}, {"source": None}, {"fee": 1},
                    {"source": replace_metadata("op-2")}):
        assert digest([LINE | changed]) != same, changed
    assert digest([LINE, LINE | {"id": "txn_2"}]) != same
    assert digest([LINE], total_count=2) != same


def replace_metadata(operation: str) -> dict[str, Any]:
    return REFUND | {"metadata": {"operation_id": operation}}


def test_evidence_of_a_page_keeps_what_the_day_rests_on() -> None:
    told = read(page([LINE], total_count=1))
    kept = told.seen.body
    assert (kept["total_count"], kept["data"][0]["id"], kept["data"][0]["source"]["id"]) == (1, "txn_1", "re_1")
    assert replace(told, seen=None) == replace(read(page([LINE], total_count=1)), seen=None)
