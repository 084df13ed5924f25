"""A bank's statement, camt.053, as one day of one account; refused as a whole when any of it cannot be read."""

from __future__ import annotations

import hashlib
from datetime import date, timedelta
from zoneinfo import ZoneInfo

from runtime_app.adapters.payments.bank_entries import read_entries
from runtime_app.adapters.payments.bank_settings import read_debtor, read_iban
from runtime_app.adapters.payments.bank_xml import Node, Refused, read_document
from runtime_app.adapters.payments.days import known_zone
from runtime_app.adapters.payments.types import BadStatement, ProviderAccount, Statement
from runtime_app.money import Money

VERSIONS = ("camt.053.001.08", "camt.053.001.02")
SOURCE = "camt.053"
_OPENING, _CLOSING = ("OPBD", "PRCD"), ("CLBD",)


def parse_camt053(account: ProviderAccount, raw: bytes) -> Statement | BadStatement:
    try:
        return _read(account, raw)
    except Refused as refused:
        return BadStatement(str(refused)[:300])


def _read(account: ProviderAccount, raw: bytes) -> Statement:
    statement = _only_statement(read_document(raw, VERSIONS, "BkToCstmrStmt"))
    iban, currency = _whose(account, statement)
    opening, _ = _balance(statement, _OPENING, currency)
    closing, day = _balance(statement, _CLOSING, opening.currency)
    zone = known_zone(account.time_zone)
    if zone is None:
        raise Refused("The account's time zone is not known, so its days are not either.")
    _check_day(statement, day, zone)
    lines = read_entries(statement, day=day, currency=opening.currency, zone=zone)
    return Statement(
        day=day, lines=lines, sha256=hashlib.sha256(raw).hexdigest(), source=SOURCE, account_ref=iban,
        sequence=(statement.text("ElctrncSeqNb", "LglSeqNb") or "")[:60], opening=opening, closing=closing,
        count_told=_count(statement, len(lines)),
    )


def _only_statement(message: Node) -> Node:
    statements = list(message.all("Stmt"))
    if not statements:
        raise Refused("The file holds no statement.")
    if len(statements) > 1:
        raise Refused(
            f"The file holds {len(statements)} statements. Split it into one file for each: every file with the same "
            "Document, BkToCstmrStmt and GrpHdr around one Stmt."
        )
    statement = Node(statements[0].element, "the statement")
    pages = statement.text("StmtPgntn/LastPgInd") or message.text("GrpHdr/MsgPgntn/LastPgInd")
    number = statement.text("StmtPgntn/PgNb") or message.text("GrpHdr/MsgPgntn/PgNb")
    if pages not in (None, "true", "1") or number not in (None, "1"):
        raise Refused("This is one page of several; ask the bank for the statement in one piece.")
    return statement


def _whose(account: ProviderAccount, statement: Node) -> tuple[str, str]:
    """The IBAN and the currency, which are the account's own."""
    debtor = read_debtor(account)
    told = statement.need("Acct/Id/IBAN")
    if read_iban(told) != debtor.iban or not debtor.iban:
        raise Refused(f"This is a statement of another account: {told[:4]}…{told[-4:]}, not "
                      f"{debtor.iban[:4]}…{debtor.iban[-4:]}.")
    currency = statement.text("Acct/Ccy") or debtor.currency
    if debtor.currency and currency != debtor.currency:
        raise Refused(f"This is a statement in {currency[:10]!r}; the account is held in {debtor.currency}.")
    return debtor.iban, currency


def _balance(statement: Node, codes: tuple[str, ...], currency: str) -> tuple[Money, date]:
    """The booked balance of the first of these kinds, and its day; in `currency`, or in any when that is not told."""
    found = {b.text("Tp/CdOrPrtry/Cd"): b for b in reversed(list(statement.all("Bal", "balance")))}
    kind = next((code for code in codes if code in found), None)
    if kind is None:
        raise Refused(f"The statement has no {'opening' if codes is _OPENING else 'closing'} balance ({codes[0]}).")
    if sum(b.text("Tp/CdOrPrtry/Cd") == kind for b in statement.all("Bal", "balance")) > 1:
        raise Refused(f"The statement has more than one balance {kind}.")
    balance = found[kind]
    amount = balance.signed()
    if currency and amount.currency != currency:
        raise Refused(f"{balance.where} is in {amount.currency}, not in {currency}.")
    at = balance.moment("Dt/Dt", "Dt/DtTm")
    if at is None:
        raise Refused(f"{balance.where} has no date.")
    return amount, at.date()


def _check_day(statement: Node, day: date, zone: ZoneInfo) -> None:
    """One day and no more: what is closed is a day. A bank writes its own time or UTC, and a day has 25 hours once."""
    first, last = statement.moment("FrToDt/FrDtTm"), statement.moment("FrToDt/ToDtTm")
    if first is None or last is None:
        return
    first, last = (at if at.tzinfo else at.replace(tzinfo=zone) for at in (first, last))
    if not timedelta(0) <= last - first <= timedelta(hours=25) or abs((first.date() - day).days) > 1:
        raise Refused(f"The statement goes from {first.date()} to {last.date()} and closes on {day}; ask the bank for "
                      "one day at a time.")


def _count(statement: Node, lines: int) -> int | None:
    """How many lines the bank counts. It counts entries, and one entry may hold several payments."""
    text = statement.text("TxsSummry/TtlNtries/NbOfNtries")
    if text is not None and not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise Refused(f"the statement: {text[:40]!r} is no number of entries.")
    return lines + int(text) - sum(1 for _ in statement.all("Ntry")) if text is not None else None
