"""Reading a bank's statement: everything that counts, or nothing of it and a sentence that says why."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime_app.adapters.payments.bank import BankPayments
from runtime_app.adapters.payments.bank_xml import BYTES_MOST
from runtime_app.adapters.payments.types import BadStatement, LineKind, Statement, StatementLine
from runtime_app.money import MAX_MINOR, Money
from tests.adapters.bank import NOWHERE, bank_account
from tests.adapters.bank_camt_file import (
    ACCOUNT,
    DAY,
    OPERATION,
    PERIOD,
    RETURN,
    SENT,
    balance,
    camt053,
    entry,
    payment,
    statement,
)

OURS = bank_account(NOWHERE)
PAYMENTS = BankPayments(connect_timeout=1, read_timeout=1)
GOOD = camt053(statement([entry()]))


def read(raw: bytes, account: Any = OURS) -> Statement:
    told = PAYMENTS.parse_statement(account, raw)
    assert isinstance(told, Statement), told
    return told


def refused(raw: bytes, account: Any = OURS) -> str:
    told = PAYMENTS.parse_statement(account, raw)
    assert isinstance(told, BadStatement), told
    assert len(told.why) <= 300 and told.why.isprintable()
    return told.why


def line_of(*args: Any, **changes: Any) -> StatementLine:
    (line,) = read(camt053(statement([entry(*args, **changes)]))).lines
    return line


def test_a_statement_is_a_day_with_balances_and_lines() -> None:
    told = read(GOOD)
    assert (told.day, told.source, told.sequence, told.account_ref) == (
        date(2099, 1, 6), "camt.053", "17", "NL41MOCK0000000001")
    assert (told.opening, told.closing, told.count_told, told.trouble) == (
        Money(10000, "EUR"), Money(7500, "EUR"), None, "")
    (line,) = told.lines
    assert (line.ref, line.kind, line.amount) == ("B-1", LineKind.REFUND, Money(-2500, "EUR"))
    assert (line.our_ref, line.provider_ref) == (str(OPERATION), OPERATION.hex)
    assert (line.occurred_at, line.settled_on) == (datetime(2099, 1, 6, tzinfo=UTC), date(2099, 1, 6))


def test_the_same_bytes_give_the_same_statement_and_other_bytes_another_digest() -> None:
    assert read(GOOD) == read(GOOD)
    assert read(GOOD).sha256 != read(GOOD + b"\n").sha256


@pytest.mark.parametrize(("raw", "changes"), [
    (camt053(statement([entry(status="<Sts>BOOK</Sts>")]), version="camt.053.001.02"), {}),
    (b"\xef\xbb\xbf" + GOOD, {}),
    (GOOD.replace(b"<Bal>", b"<!-- <Ntry> --><Bal>"), {}),
    (GOOD.replace(b">25.00<", b">25<!-- x -->.<?x y?>00<"), {}), (GOOD.replace(b">25.00<", b"><![CDATA[25.00]]><"), {}),
    (camt053(statement([entry()], opening=balance("PRCD", "100.00", day="2099-01-05"))), {}),
    (camt053(statement([entry()], account=ACCOUNT.replace("<Ccy>EUR</Ccy>", ""))), {}),
    (camt053(statement([entry()], account=ACCOUNT.replace("NL41MOCK0000000001", "NL41 MOCK 0000 0000 01"))), {}),
    (camt053(statement([entry()], period="")), {}),
    (camt053(statement([entry()], closing=balance("CLBD", "75.00") + balance("CLAV", "1.00"))), {}),
    (camt053(statement([entry()], more="<StmtPgntn><PgNb>1</PgNb><LastPgInd>true</LastPgInd></StmtPgntn>")), {}),
    (camt053(statement([entry()], period=PERIOD.replace("23:59:59Z", "24:00:00Z").replace(
        f"<ToDtTm>{DAY}T24", "<ToDtTm>2099-01-07T00"))), {}),
    (GOOD, {"debtor_currency": "EUR"}),
], ids=range(13))
def test_banks_that_write_it_differently_are_read_alike(raw: bytes, changes: dict[str, str]) -> None:
    told, usual = read(raw, bank_account(NOWHERE, **changes)), read(GOOD)
    assert (told.day, told.opening, told.closing) == (usual.day, usual.opening, usual.closing)
    assert [replace(line, raw_sha256="") for line in told.lines] == [replace(one, raw_sha256="") for one in usual.lines]


def test_a_day_begins_at_the_banks_midnight() -> None:
    amsterdam = replace(OURS, time_zone="Europe/Amsterdam")
    (line,) = read(GOOD, amsterdam).lines
    assert line.occurred_at == datetime(2099, 1, 6, tzinfo=ZoneInfo("Europe/Amsterdam"))
    at = line_of(booked=f"<BookgDt><DtTm>{DAY}T15:04:05+01:00</DtTm></BookgDt>").occurred_at
    assert at == datetime(2099, 1, 6, 14, 4, 5, tzinfo=UTC)
    utc = PERIOD.replace(f"{DAY}T00:00:00Z", "2099-01-05T23:00:00Z").replace(f"{DAY}T23:59:59Z", f"{DAY}T23:00:00Z")
    assert read(camt053(statement([entry()], period=utc)), amsterdam).day == date(2099, 1, 6)


CHARGE = SENT.replace("ICDT", "MDOP")
CAME_IN = SENT.replace("ICDT", "RCDT")
RRTN = SENT.replace("ESCT", "RRTN")


@pytest.mark.parametrize(("kind", "changes"), [
    (LineKind.REFUND, {}), (LineKind.REFUND, {"code": ""}), (LineKind.REFUND, {"payments": payment("INV-1")}),
    (LineKind.REFUND, {"code": SENT.replace("ICDT", "IRCT"), "payments": ""}),
    (LineKind.REFUND, {"code": CHARGE}),  # it carries our id, whatever the bank calls it
    (LineKind.OTHER, {"code": CHARGE, "payments": ""}), (LineKind.OTHER, {"code": CHARGE, "payments": payment("x")}),
    (LineKind.REFUND_FAILED, {"side": "CRDT", "payments": payment(more=RETURN)}),
    (LineKind.REFUND_FAILED, {"side": "CRDT", "payments": payment("INV-1", more=RETURN), "code": CAME_IN}),
    (LineKind.REFUND_FAILED, {"side": "CRDT", "code": RRTN, "payments": ""}),
    (LineKind.REFUND_FAILED, {"side": "CRDT", "code": CAME_IN}),
    (LineKind.REFUND_FAILED, {"side": "CRDT", "status": "<RvslInd>true</RvslInd><Sts><Cd>BOOK</Cd></Sts>",
                              "payments": payment("x")}),
    (LineKind.OTHER, {"side": "CRDT", "code": CAME_IN, "payments": payment("NOTPROVIDED")}),
    (LineKind.OTHER, {"side": "CRDT", "code": CAME_IN, "payments": ""}),
    (LineKind.OTHER, {"code": RRTN, "payments": payment("x", more=RETURN)}),  # money of others, going back to them
])
def test_a_line_is_a_refund_or_one_that_came_back_or_neither(kind: LineKind, changes: dict[str, Any]) -> None:
    line = line_of(**changes)
    assert line.kind is kind
    assert (line.amount.minor > 0) == (changes.get("side") == "CRDT")


@pytest.mark.parametrize(("told", "our_ref", "provider_ref"), [
    (OPERATION.hex.upper(), str(OPERATION), OPERATION.hex.upper()), ("INV-1", None, "INV-1"),
    ("NOTPROVIDED", None, None), ("", None, None),
])
def test_an_id_is_ours_only_in_our_form(told: str, our_ref: str | None, provider_ref: str | None) -> None:
    line = line_of(payments=payment(told))
    assert (line.our_ref, line.provider_ref) == (our_ref, provider_ref)


def test_lines_have_references_of_their_own() -> None:
    """A line is kept once per reference: two bookings must not have one, and the same booking not two."""
    nameless = entry(ref="<NtryRef>1</NtryRef><AcctSvcrRef>NONREF</AcctSvcrRef>")
    first = read(camt053(statement([nameless, nameless], id="S-17"))).lines
    second = read(camt053(statement([nameless], id="S-18"))).lines
    assert [line.ref for line in first + second] == ["S-17/1", "S-17/2", "S-18/1"]
    back = read(camt053(statement([entry(), entry(side="CRDT", payments=payment(more=RETURN))]))).lines
    assert [line.ref for line in back] == ["B-1", "B-1/CRDT"]


def test_several_payments_in_one_entry_are_several_lines() -> None:
    amount = '<Amt Ccy="EUR">{}</Amt>'
    two = payment(more=amount.format("10.00")) + payment("INV-2", more=amount.format("15.00") +
                                                         "<CdtDbtInd>DBIT</CdtDbtInd>")
    lines = read(camt053(statement([entry(payments=two)]))).lines
    assert [(line.ref, line.amount.minor, line.our_ref) for line in lines] == [
        ("B-1/1", -1000, str(OPERATION)), ("B-1/2", -1500, None)]
    assert "do not add up" in refused(camt053(statement([entry(payments=two.replace("15.00", "15.01"))])))
    assert "Amt is missing" in refused(camt053(statement([entry(payments=payment() + payment("x"))])))
    for part in ("10", "15"):
        mixed = two.replace(f'"EUR">{part}', f'"USD">{part}')
        assert "in USD" in refused(camt053(statement([entry(payments=mixed)])))


@pytest.mark.parametrize(("currency", "text", "minor"), [
    ("EUR", "0.01", 1), ("EUR", "1", 100), ("EUR", "1.5", 150), ("EUR", "007.00", 700), ("JPY", "12345", 12345),
    ("KWD", "12.345", 12345), ("IQD", "0.001", 1), ("HUF", "12345.67", 1234567), ("CLF", "0.0001", 1),
])
def test_amounts_are_read_exactly(currency: str, text: str, minor: int) -> None:
    """C41: exponents 0, 2, 3 and 4, and the currencies that libraries get wrong."""
    raw = camt053(statement(
        [entry(text, currency=currency)], account=ACCOUNT.replace("EUR", currency),
        opening=balance("OPBD", "0", currency=currency), closing=balance("CLBD", text, side="DBIT", currency=currency)))
    told = read(raw)
    assert told.lines[0].amount == told.closing == Money(-minor, currency)


@pytest.mark.parametrize(("amount", "why"), [
    ("1.234", "more decimals"), ("1.230", "more decimals"), ("-1.00", "no amount"), ("1,00", "no amount"),
    ("1e3", "no amount"), ("", "missing"), ("NaN", "no amount"), ("\u0661", "no amount"), ("+1.00", "no amount"),
    ("0x10", "no amount"), ("99999999999999999999", "no amount"), (str(MAX_MINOR), "more than this can hold"),
])
def test_an_amount_that_is_none_refuses_the_whole_statement(amount: str, why: str) -> None:
    assert why in refused(camt053(statement([entry(), entry(amount)])))
    assert why in refused(camt053(statement([entry()], closing=balance("CLBD", amount))))


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]>'
REMOTE = '<!DOCTYPE x SYSTEM "http://127.0.0.1:1/x.dtd">'
FILE_OF_THIS_MACHINE = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/hostname">]>'


@pytest.mark.parametrize(("raw", "why"), [
    (b"", "empty"), (b" \n", "empty"), (b"hello", "not XML"), (b"PK\x03\x04\x00", "not XML"),
    (b"\x00\x01\x02", "not XML"), (b"%PDF-1.7", "not XML"), (GOOD[:-20], "not XML"), (GOOD + b"<x/>", "not XML"),
    (b"<a>&undefined;</a>", "not XML"), (b"<a" * 10, "not XML"), (b"<a>" * 100_000, "not XML"),
    ("<ä/>".encode("latin-1"), "UTF-8"), (GOOD.decode().encode("utf-16"), "UTF-8"),
    (camt053(statement([entry(payments=payment("&b;"))]), head=BOMB), "document type"),
    (camt053(statement(), head=REMOTE), "document type"),
    (camt053(statement([entry(payments=payment("&a;"))]), head=FILE_OF_THIS_MACHINE), "document type"),
    (b'<?xml version="1.0" encoding="UTF-7"?>+ADwAIQ-DOCTYPE x+AD4APA-x/+AD4-', "not XML"),
    (b" " * (BYTES_MOST + 1) + b"x", "20 MB"),
    (b"<Document/>", "what is read here is"), (b"<html><body>login</body></html>", "what is read here is"),
    (camt053(statement(), version="camt.054.001.08"), "camt.054.001.08"),
    (camt053(statement(), version="pain.002.001.10"), "pain.002.001.10"),
    (camt053(statement(), version="camt.053.001.99"), "camt.053.001.99"),
    (camt053(statement(), message="BkToCstmrDbtCdtNtfctn"), "BkToCstmrStmt"),
    (GOOD.replace(b"</Document>", b"<x/></Document>"), "nothing else"),
], ids=range(25))
def test_a_file_that_is_no_statement_is_refused(raw: bytes, why: str) -> None:
    """Issue 3, bad input: not XML, too large, with entities, something else of the bank's."""
    assert why in refused(raw)


def test_elements_of_a_strange_namespace_are_not_the_banks() -> None:
    hidden = entry().replace("<Ntry>", '<Ntry xmlns="urn:x">')
    assert read(camt053(statement([hidden]))).lines == ()
    odd = entry().replace("<Ntry>", '<Ntry xmlns:x="relative">')
    assert len(read(camt053(statement([odd]))).lines) == 1


OTHER = ACCOUNT.replace("NL41MOCK0000000001", "NL14MOCK0000000002")
LONG = PERIOD.replace(f"{DAY}T00", "2099-01-01T00")
LATE = PERIOD.replace(f"{DAY}T23", "2099-01-07T23")
ANOTHER = PERIOD.replace(DAY, "2099-01-01")
BACK = PERIOD.replace("00:00:00Z", "23:59:59Z").replace("23:59:59Z</ToDtTm>", "22:00:00Z</ToDtTm>")
NO_CURRENCY = ACCOUNT.replace("<Ccy>EUR</Ccy>", "")
PAGE = "<StmtPgntn><PgNb>{}</PgNb><LastPgInd>{}</LastPgInd></StmtPgntn>"


@pytest.mark.parametrize(("raw", "why"), [
    (camt053(), "no statement"), (camt053(statement(), statement(id="S-18")), "Split it"),
    (camt053(statement(account=OTHER)), "another account: NL14…0002, not NL41…0001"),
    (camt053(statement(account="")), "IBAN is missing"), (camt053(statement(account=ACCOUNT * 2)), "2 times"),
    (camt053(statement(account=ACCOUNT.replace("EUR", "USD"))), "not in USD"),
    (camt053(statement(opening="", closing="")), "no opening balance (OPBD)"),
    (camt053(statement(closing="")), "no closing balance"),
    (camt053(statement(closing=balance("CLBD", "1") * 2)), "more than one balance CLBD"),
    (camt053(statement(closing=balance("CLBD", "1", currency="USD"))), "in USD, not in EUR"),
    (camt053(statement(closing=balance("CLBD", "1", currency="EURO"))), "no currency"),
    (camt053(statement(closing=balance("CLBD", "1", side="LEFT"))), "neither CRDT nor DBIT"),
    (camt053(statement(closing=balance("CLBD", "1", day="06.01.2099"))), "no date"),
    (camt053(statement(closing=balance("CLBD", "1", day="0001-01-01"))), "no date"),
    (camt053(statement(closing=balance("CLBD", "1").replace("<Dt><Dt>2099-01-06</Dt></Dt>", ""))), "no date"),
    (camt053(statement(closing=balance("CLBD", "1", day="1970-01-01"))), "no date"),
    (camt053(statement(closing=balance("CLBD", "1", day="9999-12-31"))), "no date"),
    (camt053(statement(account=NO_CURRENCY, closing=balance("CLBD", "1", currency="USD"))), "in USD, not in EUR"),
    (camt053(statement(period=LONG)), "one day at a time"), (camt053(statement(period=LATE)), "one day at a time"),
    (camt053(statement(period=ANOTHER)), "one day at a time"), (camt053(statement(period=BACK)), "one day at a time"),
    (camt053(statement([entry("2<x/>5.00")])), "holds more than text"),
    (camt053(statement(more=PAGE.format(1, "false"))), "one page of several"),
    (camt053(statement(more=PAGE.format(2, "true"))), "one page of several"),
    (camt053(statement(more="<TxsSummry><TtlNtries><NbOfNtries>two</NbOfNtries></TtlNtries></TxsSummry>")), "'two'"),
    (camt053(statement(id="x" * 501)), "longer than"), (camt053(statement([entry(currency="USD")])), "in USD"),
    (camt053(statement([entry(status="<Sts><Cd>PDNG</Cd></Sts>")])), "entry 1 of the statement is not booked (PDNG)"),
    (camt053(statement([entry(), entry(status="")])), "entry 2 of the statement is not booked"),
    (camt053(statement([entry(booked="")])), "no booking date"),
    (camt053(statement([entry(booked="<BookgDt><Dt>2099-01-07</Dt></BookgDt>")])), "after the statement's day"),
    (camt053(statement([entry(booked="<BookgDt><Dt>tomorrow</Dt></BookgDt>")])), "no date"),
    (camt053(statement([entry(valued="<ValDt><Dt>2099-13-01</Dt></ValDt>")])), "no date"),
    (camt053(statement([entry(side="")])), "CdtDbtInd is missing"),
    (camt053(statement([entry(ref=f"<AcctSvcrRef>{'x' * 201}</AcctSvcrRef>")])), "longer than"),
    (camt053(statement([entry(payments=payment("x" * 201))])), "longer than"),
    (camt053(statement([entry(payments=payment("x" * 501))])), "longer than"),
], ids=range(38))
def test_a_statement_that_is_not_this_accounts_one_day_is_refused(raw: bytes, why: str) -> None:
    """Issue 3, bad input: of another account or day, in another currency; nothing of it is read."""
    assert why in refused(raw)


def test_the_accounts_own_currency_is_what_a_statement_is_held_to() -> None:
    assert "'EUR'" in refused(GOOD, bank_account(NOWHERE, debtor_currency="USD"))


def test_an_account_without_settings_has_no_statements() -> None:
    assert "another account" in refused(GOOD, replace(OURS, settings={}))
    assert "time zone" in refused(GOOD, replace(OURS, time_zone="Moon/Sea"))


@settings(max_examples=300)
@given(st.data())
def test_a_damaged_statement_is_read_or_refused_and_never_breaks(data: st.DataObject) -> None:
    """Cut, doubled and overwritten anywhere."""
    raw = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(raw) - 1))
        end = min(len(raw), at + data.draw(st.integers(0, 40)))
        raw[at:end] = data.draw(st.sampled_from([b"", bytes(raw[at:end]) * 2, b"<", b">", b"\0", b"&", b"9" * 30]))
    told = PAYMENTS.parse_statement(OURS, bytes(raw))
    assert isinstance(told, Statement | BadStatement)
