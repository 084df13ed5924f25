"""Fetching the statement of one day from the bank."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any
from urllib.parse import quote

from runtime_app.adapters.payments.bank_camt import SOURCE, parse_camt053
from runtime_app.adapters.payments.bank_client import Answer, BankCalls
from runtime_app.adapters.payments.bank_settings import Debtor, read_debtor, read_iban
from runtime_app.adapters.payments.types import BadStatement, Deadline, Inconclusive, ProviderAccount, Statement
from runtime_app.errors import FieldErrors
from runtime_app.money import Money

_KEPT = ("id", "currency", "number", "day", "opening", "closing", "entries", "message_id", "error")


def read_day(
    calls: BankCalls, account: ProviderAccount, day: date, deadline: Deadline
) -> Statement | BadStatement | Inconclusive:
    """The bank's camt.053 of this day. A day without business has none, and then is told as a day without entries."""
    debtor = read_debtor(account)
    accounts = calls.ask(account, "accounts", "/_mock/accounts", deadline=deadline, kept=_KEPT)
    held = [one for one in _listed(accounts) if read_iban(str(one.get("iban"))) == debtor.iban]
    if len(held) != 1 or not isinstance(held[0].get("id"), str) or not held[0]["id"].isprintable():
        return _silent(accounts, "the bank does not list the account that pays")
    path = f"/_mock/accounts/{quote(held[0]['id'], safe='')}/statements"
    issued = calls.ask(account, "statements", path, deadline=deadline, kept=_KEPT)
    rows = _listed(issued)
    today = [row for row in rows if row.get("day") == day.isoformat()]
    if len(today) == 1 and type(today[0].get("message_id")) is int:
        return _read_message(calls, account, today[0]["message_id"], day, deadline)
    if today:
        return _silent(issued, "the bank issued a statement of this day and does not hand it out")
    return _without_business(issued, rows, day, debtor, str(held[0].get("currency")))


def _read_message(
    calls: BankCalls, account: ProviderAccount, number: int, day: date, deadline: Deadline
) -> Statement | BadStatement | Inconclusive:
    answer = calls.ask(account, "statement", f"/_mock/mailbox/{number}", deadline=deadline, json=False)
    if answer.exchange.status != 200:
        return _silent(answer, "the statement was not handed out")
    read = parse_camt053(account, answer.exchange.content)
    if isinstance(read, BadStatement):
        return read
    if read.day != day:
        return BadStatement(f"The bank was asked for the statement of {day} and sent the one of {read.day}.")
    told = {"sequence": read.sequence, "entries": len(read.lines)}
    return replace(read, seen=replace(answer.seen, body=told))


def _without_business(
    issued: Answer, rows: list[dict[str, Any]], day: date, debtor: Debtor, currency: str
) -> Statement | Inconclusive:
    """A day between two statements that follow each other, in number and in balance, had no entries."""
    text = day.isoformat()
    known = sorted((row for row in rows if isinstance(row.get("day"), str)), key=lambda row: str(row["day"]))
    before = next((row for row in reversed(known) if row["day"] < text), None)
    after = next((row for row in known if row["day"] > text), None)
    if before is None or after is None:
        return _silent(issued, "the bank has not issued a statement of this day")
    if [type(before.get("number")), type(after.get("number"))] != [int, int] or after["number"] != before["number"] + 1:
        return _silent(issued, "a statement is missing between those before and after this day")
    if before.get("closing") != after.get("opening"):
        return _silent(issued, "the balance changed between the statements before and after this day")
    try:
        balance = Money(before.get("closing"), currency)
    except FieldErrors:
        return _silent(issued, "the bank's list of statements cannot be read")
    return Statement(day, (), issued.seen.body_sha256 or "", SOURCE, debtor.iban, "", balance, balance, 0,
                     seen=issued.seen)


def _listed(answer: Answer) -> list[dict[str, Any]]:
    rows = answer.value if answer.exchange.status == 200 and isinstance(answer.value, list) else []
    return [row for row in rows if isinstance(row, dict)]


def _silent(answer: Answer, cause: str) -> Inconclusive:
    told = cause if answer.exchange.status == 200 else f"{cause}: {answer.why}"
    return Inconclusive(told, replace(answer.seen, complete=False))
