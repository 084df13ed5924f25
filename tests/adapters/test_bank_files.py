"""What is written into a payment file, and what is asked of an account and a destination before one is."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime_app.adapters.payments.bank import BankPayments
from runtime_app.adapters.payments.bank_pain import operation_ref, our_id, write_pain001
from runtime_app.adapters.payments.bank_settings import Creditor, Debtor, read_destination
from runtime_app.adapters.payments.bank_xml import Node, read_document
from runtime_app.errors import FieldErrors
from runtime_app.money import MAX_MINOR, Money
from tests.adapters.bank import DESTINATION, bank_account

PAYMENTS = BankPayments(connect_timeout=1, read_timeout=1)
ACCOUNT = bank_account("https://bank.example")
SETTINGS: dict[str, Any] = dict(ACCOUNT.settings)
DEBTOR = Debtor("NL41MOCK0000000001", "ACME & Söhne <AG>", "MOCKNL2A", "")
PAYMENT = "PmtInf/CdtTrfTxInf/"
LONGEST = "MT84MALT011000012345MTLCAST001S"  # 31 characters


def freeze(**changes: Any) -> Any:
    asked: dict[str, Any] = {"operation_id": uuid4(), "payment_ref": "pi_1", "amount": Money(2500, "EUR"),
                             "reason": "damaged", "destination": DESTINATION} | changes
    return PAYMENTS.freeze(asked.pop("account", ACCOUNT), **asked)


def read(file: bytes) -> Node:
    return read_document(file, ("pain.001.001.09",), "CstmrCdtTrfInitn")


def test_a_file_is_one_payment_with_our_id_everywhere() -> None:
    """money.md 6: MsgId and EndToEndId come from the operation, in at most 35 characters."""
    operation = UUID("0a1b2c3d-4e5f-4a6b-8c7d-0123456789ab")
    frozen = freeze(operation_id=operation)
    file = read(frozen.body)
    for path in ("GrpHdr/MsgId", "PmtInf/PmtInfId", PAYMENT + "PmtId/EndToEndId"):
        assert file.need(path) == "0a1b2c3d4e5f4a6b8c7d0123456789ab"
    assert operation_ref(file.need("GrpHdr/MsgId")) == str(operation)
    assert (file.need("GrpHdr/NbOfTxs"), file.need("GrpHdr/CtrlSum"), file.need("PmtInf/CtrlSum")) == (
        "1", "25.00", "25.00")
    assert (file.need("PmtInf/DbtrAcct/Id/IBAN"), file.need(PAYMENT + "CdtrAcct/Id/IBAN")) == (
        "NL41MOCK0000000001", "NL30MOCK0000000005")
    assert (file.need("PmtInf/Dbtr/Nm"), file.need(PAYMENT + "Cdtr/Nm")) == ("ACME Corporation", "Noor de Vries")
    assert file.need("PmtInf/DbtrAgt/FinInstnId/BICFI") == "MOCKNL2A"
    assert file.need(PAYMENT + "RmtInf/Ustrd") == "pi_1 damaged"
    assert frozen.api_version == "pain.001.001.09"


def test_a_file_asks_for_the_day_that_it_is_at_the_bank() -> None:
    at = datetime(2026, 12, 31, 23, 30, tzinfo=UTC)
    for zone, day in (("UTC", "2026-12-31"), ("Europe/Amsterdam", "2027-01-01"), ("America/New_York", "2026-12-31")):
        file = read(write_pain001(DEBTOR, Creditor("NL30MOCK0000000005", ""), operation_id=uuid4(), at=at,
                                  amount=Money(1, "EUR"), remittance="x", zone=ZoneInfo(zone)))
        assert (file.need("GrpHdr/CreDtTm"), file.need("PmtInf/ReqdExctnDt/Dt")) == ("2026-12-31T23:30:00Z", day)
        assert file.need("PmtInf/Dbtr/Nm") == DEBTOR.name
        assert file.need(PAYMENT + "Cdtr/Nm") == "NOTPROVIDED"


@pytest.mark.parametrize(("minor", "currency", "text"), [
    (1, "EUR", "0.01"), (100, "EUR", "1.00"), (123456789, "EUR", "1234567.89"), (1, "JPY", "1"), (1, "KWD", "0.001"),
    (12345, "IQD", "12.345"), (1, "CLF", "0.0001"), (5, "HUF", "0.05"), (MAX_MINOR, "EUR", "10000000000000.00"),
])
def test_an_amount_is_written_with_the_decimals_of_its_currency(minor: int, currency: str, text: str) -> None:
    """C41: exponents 0, 2, 3 and 4."""
    assert read(freeze(amount=Money(minor, currency)).body).need(PAYMENT + "Amt/InstdAmt") == text


@given(st.integers(1, MAX_MINOR), st.sampled_from(["EUR", "JPY", "KWD", "CLF", "ISK", "UGX", "MGA", "HUF"]))
def test_an_amount_comes_back_as_it_was_written(minor: int, currency: str) -> None:
    """Nothing is rounded on the way out or in."""
    amount = Money(minor, currency)
    file = write_pain001(DEBTOR, Creditor("NL30MOCK0000000005", ""), operation_id=uuid4(), amount=amount,
                         remittance="x", at=datetime(2026, 1, 1, tzinfo=UTC), zone=ZoneInfo("UTC"))
    assert read(file).money(PAYMENT + "Amt/InstdAmt") == amount


@given(st.text(), st.text())
def test_no_text_of_a_person_changes_the_shape_of_a_file(payment_ref: str, reason: str) -> None:
    body = freeze(payment_ref=payment_ref, reason=reason).body
    file = read(body)
    assert file.need(PAYMENT + "CdtrAcct/Id/IBAN") == "NL30MOCK0000000005"
    assert len(file.text(PAYMENT + "RmtInf/Ustrd") or "") <= 140
    assert len(re.findall(b"<CdtTrfTxInf>", body)) == 1


def test_ids_go_there_and_back() -> None:
    operation = uuid4()
    assert operation_ref(our_id(operation)) == operation_ref(our_id(operation).upper()) == str(operation)
    for other in ("", "INV-1", "0" * 31, "0" * 33, "g" * 32, str(operation), "0" * 31 + "\u0660"):
        assert operation_ref(other) is None


@pytest.mark.parametrize(("text", "iban", "name"), [
    ("NL30MOCK0000000005", "NL30MOCK0000000005", ""),
    ("NL30MOCK0000000005 Noor de Vries", "NL30MOCK0000000005", "Noor de Vries"),
    ("  nl30 mock 0000 0000 05   Noor  de Vries ", "NL30MOCK0000000005", "Noor de Vries"),
    ("NL30 MOCK 0000 0000 05", "NL30MOCK0000000005", ""),
    ("DE89 3704 0044 0532 0130 00 12 Apostel e.V.", "DE89370400440532013000", "12 Apostel e.V."),
    (f"{LONGEST} Zoë", LONGEST, "Zoë"),
])
def test_a_destination_is_an_iban_and_perhaps_a_name(text: str, iban: str, name: str) -> None:
    assert read_destination(text) == Creditor(iban, name)
    assert PAYMENTS.check_destination(text) is None


@pytest.mark.parametrize("text", [
    None, "", "   ", "Noor de Vries", "NL31MOCK0000000005", "NL30MOCK000000005", "XX30MOCK0000000005", "card_123",
    "Noor NL30MOCK0000000005", "NL30MOCK0000000005\nNL84MOCK0000000003", "NL30MOCK0000000005 " + "x" * 71,
    "NL30MOCK0000000005" + " x" * 200, "NL30MOCK0000000005 \0", "NL30MOCK0000000005Noor", "\u0660" * 18,
], ids=repr)
def test_a_destination_that_is_none_is_refused_in_a_sentence(text: str | None) -> None:
    said = PAYMENTS.check_destination(text)
    assert said and said.endswith(".") and len(said) < 200
    with pytest.raises(FieldErrors) as refused:
        freeze(destination=text)
    assert refused.value.errors == {"destination": said}


@pytest.mark.parametrize(("changes", "names"), [
    ({"settings": {}}, {"debtor_iban", "debtor_name", "debtor_bic"}),
    ({"settings": SETTINGS | {"debtor_iban": "NL42MOCK0000000001"}}, {"debtor_iban"}),
    ({"settings": SETTINGS | {"debtor_iban": 5}}, {"debtor_iban"}),
    ({"settings": SETTINGS | {"debtor_name": "x" * 71}}, {"debtor_name"}),
    ({"settings": SETTINGS | {"debtor_name": " \x1b "}}, {"debtor_name"}),
    ({"settings": SETTINGS | {"debtor_bic": "MOCK"}}, {"debtor_bic"}),
    ({"settings": SETTINGS | {"debtor_currency": "EURO"}}, {"debtor_currency"}),
    ({"settings": SETTINGS | {"debtor_ibann": "x"}}, {"debtor_ibann"}),
    ({"base_url": ""}, {"base_url"}), ({"base_url": "ftp://bank"}, {"base_url"}),
    ({"time_zone": "Moon/Sea"}, {"time_zone"}), ({"api_key": "two\r\nlines"}, {"api_key"}),
    ({"api_key": "naïve:x"}, {"api_key"}),
])
def test_an_account_that_cannot_pay_is_told_setting_by_setting(changes: dict[str, Any], names: set[str]) -> None:
    account = replace(ACCOUNT, **changes)
    told = PAYMENTS.check_account(account)
    assert told.keys() == names and all(said.endswith(".") for said in told.values())
    with pytest.raises(FieldErrors) as refused:
        freeze(account=account)
    assert refused.value.errors.keys() == names


def test_an_account_with_everything_is_usable() -> None:
    assert PAYMENTS.check_account(ACCOUNT) == {}
    spaced = {"debtor_iban": "nl41 mock 0000 0000 01", "debtor_bic": "mocknl2a", "debtor_currency": "eur"}
    account = replace(ACCOUNT, settings=SETTINGS | spaced)
    assert PAYMENTS.check_account(account) == {}
    assert read(freeze(account=account).body).need("PmtInf/DbtrAcct/Id/IBAN") == "NL41MOCK0000000001"


def test_nothing_is_not_an_amount() -> None:
    assert PAYMENTS.check_representable(Money(1, "KWD")) is None
    for minor in (0, -1):
        assert PAYMENTS.check_representable(Money(minor, "EUR"))
        with pytest.raises(FieldErrors):
            freeze(amount=Money(minor, "EUR"))
