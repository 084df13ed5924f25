"""Statement days: the list, one day with its totals and exceptions, files that people bring, and closing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from html import unescape
from typing import Any

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runtime_app import accounts
from runtime_app.models import Account, Case, Statement, StatementDay, User
from runtime_app.statements import calendar, reach
from tests.adapters import bank_camt_file as camt
from tests.adapters.bank import SETTINGS
from tests.console.conftest import Visitor
from tests.statements.books import Books
from tests.world import World

Visit = Callable[[User | None], Visitor]


@pytest.fixture
def books(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Books]:
    monkeypatch.setattr(settings, "TIMING", world.timing)
    reach.provider.cache_clear()
    yield Books(world)
    reach.provider.cache_clear()


def plain(text: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", text)).split())


def address(row: StatementDay, act: str = "") -> str:
    return f"/reconciliation/days/{row.pk}/{act + '/' if act else ''}"


def bank(world: World) -> Account:
    """Amber's account at a bank, whose statements come as files."""
    return accounts.keep(world.amber, "bank", provider="bank", base_url="https://bank.example", settings=SETTINGS)


def yesterday(account: Account) -> date:
    return calendar.today(account, calendar.now()) - timedelta(days=1)


def file(day: date, *entries: str, **parts: Any) -> bytes:
    """A camt.053 of that day in which nothing, or just these entries, was booked."""
    closing = parts.pop("closing", camt.balance("CLBD", "100.00" if not entries else "75.00"))
    told = camt.camt053(camt.statement(entries, closing=closing, **parts))
    return told.replace(camt.DAY.encode(), day.isoformat().encode())


def bring(visitor: Visitor, path: str, raw: bytes, **fields: str) -> Any:
    """Send the file by the page's own form; the page is the list, or the day's."""
    hidden = visitor.form(path, f"{path}upload/")
    told = SimpleUploadedFile("statement.xml", raw, "application/xml")
    return visitor.client.post(f"{path}upload/", {**hidden, "file": told, **fields})


def test_a_day_shows_its_totals_what_does_not_match_and_the_cases(books: Books, visit: Visit) -> None:
    """money.md 3.5, 3.7: ours, theirs and the difference by currency; every exception with its case."""
    operation = books.refund(2500)
    books.take(books.line(operation), books.line(None, -700))
    row, olga = books.row(), visit(books.world.olga)
    text = olga.text(address(row))
    words = plain(text)
    assert "USD 25.00 USD 32.00 USD 7.00 USD 0.00 USD" in words
    assert "Booking nobody knows" in words and "Matched 1" in words and "A booking that we do not know." in words
    case = Case.objects.get(class_name="MISSING_HERE")
    assert f"/reconciliation/cases/{case.id}/" in text
    listed = plain(olga.text("/reconciliation/days/"))
    assert "Open — 2 1 — 1" in listed
    assert address(row) in olga.text(f"/reconciliation/cases/{case.id}/")


def test_what_it_may_be_is_named_and_matched_by_nobody(books: Books, visit: Visit) -> None:
    """money.md 3.5: a line of a like amount suggests the refund, on the day and in the case, and proves nothing."""
    operation = books.refund(2500)
    books.take(books.line(None, -2500))
    case, olga = Case.objects.get(class_name="MISSING_HERE"), visit(books.world.olga)
    for path in (address(books.row()), f"/reconciliation/cases/{case.id}/"):
        text = olga.text(path)
        assert f'href="/reconciliation/{operation.id}/">{operation.order_ref}</a>' in text, path
    words = plain(olga.text(f"/reconciliation/cases/{case.id}/"))
    assert "It may be one of these by amount and time; no proof" in words
    assert "The provider shows 25.00 USD" in words and "booked on a statement" in words


def test_a_person_closes_a_day_exactly_as_it_was_read(books: Books, visit: Visit) -> None:
    """money.md 3.5: the form says what it closes; the day keeps who, when and what."""
    books.take(books.line(books.refund(2500)))
    row, olga = books.row(), visit(books.world.olga)
    words = plain(olga.text(address(row)))
    assert "1 line is compared. Ours 25.00 USD, theirs 25.00 USD, a difference of 0.00 USD." in words
    assert olga.send(address(row, "close"), olga.form(address(row), address(row, "close"))).status_code == 302
    row.refresh_from_db()
    assert (row.state, row.closed_by) == ("closed", books.world.olga)
    closed = olga.text(address(row))
    assert "closed by Olga Brook" in closed and address(row, "close") not in closed
    assert "Olga Brook" in olga.text("/reconciliation/days/?state=closed")


def test_a_day_that_changed_since_it_was_read_is_not_closed(books: Books, visit: Visit) -> None:
    """Console rule 3: another line came, or somebody else closed it first: 409, and the reason."""
    books.take(books.line(books.refund(2500)))
    row, olga = books.row(), visit(books.world.olga)
    read = olga.form(address(row), address(row, "close"))
    books.take(books.line(books.refund(1000)), sequence="2")
    lost = olga.send(address(row, "close"), read)
    assert lost.status_code == 409 and "It was not closed" in lost.content.decode()
    garbled = olga.send(address(row, "close"), {**read, "seen_sha256": "x" * 65})
    assert garbled.status_code == 409
    row.refresh_from_db()
    assert row.state == "open"


def test_a_day_in_trouble_says_why_it_cannot_be_closed(books: Books, visit: Visit) -> None:
    """Completeness first: there is no form, and the sentence says by how much it does not add up."""
    books.take(books.line(books.refund(2500)), count_told=3)
    row = books.row()
    text = visit(books.world.olga).text(address(row))
    assert "What came in is not the whole day" in text and address(row, "close") not in text
    assert "It cannot be closed yet:" in text and "Open, in trouble" in text
    seen = visit(books.world.sam).text(address(row))
    assert "Open, in trouble" in seen


def test_support_sees_days_and_closes_none(books: Books, visit: Visit) -> None:
    """M21: the right to see is not the right to close or to bring a file."""
    books.take(books.line(books.refund(2500)))
    bank(books.world)
    row, sam, olga = books.row(), visit(books.world.sam), visit(books.world.olga)
    text = sam.text(address(row))
    assert address(row, "close") not in text and "not close them" in text
    assert "Bring a statement file" not in sam.text("/reconciliation/days/")
    hidden = olga.form(address(row), address(row, "close"))
    token = sam.form(address(row), "/accounts/logout/")
    assert sam.send(address(row, "close"), {**hidden, **token}).status_code == 403
    assert sam.send("/reconciliation/days/upload/", token).status_code == 403
    row.refresh_from_db()
    assert row.state == "open" and visit(books.world.rita).get("/reconciliation/days/").status_code == 403


def test_a_file_is_taken_once_and_its_day_is_shown(world: World, books: Books, visit: Visit) -> None:
    """Brought twice it adds nothing; the list offers it for accounts whose statements are files only."""
    account = bank(world)
    day, olga = yesterday(account), visit(world.olga)
    form = olga.text("/reconciliation/days/")
    assert f'value="{account.pk}"' in form and ">stripe</option>" not in form
    raw = file(day, camt.entry())
    first = bring(olga, "/reconciliation/days/", raw, account=str(account.pk))
    assert first.status_code == 302
    row = StatementDay.objects.get(account=account, day=day)
    assert first["Location"] == address(row)
    assert "Taken: 1 line, 1 of it new." in olga.text(address(row))
    again = bring(olga, address(row), raw)
    assert again.status_code == 302 and "nothing was added" in olga.text(address(row))
    assert Statement.objects.count() == 1


@pytest.mark.parametrize("raw, sentence", [
    (b"", "empty"), (b"hello", "not XML"), (b"\xff\xfe\x00", ""), (b"<a/>", ""),
    (b'<?xml version="1.0"?><!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]><Document>&x;</Document>', ""),
])  # fmt: skip
def test_a_file_that_is_none_is_refused_beside_the_field(
    world: World, books: Books, visit: Visit, raw: bytes, sentence: str
) -> None:
    """Bad input: a sentence, nothing half-ingested, never a 500."""
    account = bank(world)
    refused = bring(visit(world.olga), "/reconciliation/days/", raw, account=str(account.pk))
    text = refused.content.decode()
    assert refused.status_code == 422 and 'id="id_file_error"' in text and sentence in text
    assert not Statement.objects.exists()


def test_a_file_of_another_day_account_or_currency_is_refused(world: World, books: Books, visit: Visit) -> None:
    """Bad input: the sentence names what is wrong."""
    account = bank(world)
    day, olga = yesterday(account), visit(world.olga)
    assert bring(olga, "/reconciliation/days/", file(day), account=str(account.pk)).status_code == 302
    row = StatementDay.objects.get(account=account, day=day)
    other = bring(olga, address(row), file(day - timedelta(days=1)))
    assert other.status_code == 422 and "This is the statement of" in other.content.decode()
    iban = camt.ACCOUNT.replace("NL41MOCK0000000001", "NL14MOCK0000000002")
    assert bring(olga, address(row), file(day, account=iban)).status_code == 422
    future = bring(olga, "/reconciliation/days/", file(day + timedelta(days=30)), account=str(account.pk))
    assert future.status_code == 422 and "not over yet" in future.content.decode()
    nobody = bring(olga, "/reconciliation/days/", file(day), account="00000000-0000-0000-0000-000000000000")
    assert nobody.status_code == 422
    missing = olga.send("/reconciliation/days/upload/", {
        **olga.form("/reconciliation/days/", "/reconciliation/days/upload/"), "account": str(account.pk)})
    assert missing.status_code == 422 and "Choose the file." in missing.content.decode()
    assert Statement.objects.count() == 1


def test_a_file_that_is_too_large_is_cut_off_and_refused_beside_the_field(
    world: World, books: Books, visit: Visit
) -> None:
    """Issue, bad input: 20 MB at most; it is not kept while it comes in, and nothing of it is taken."""
    account = bank(world)
    raw = file(yesterday(account)) + b" " * (20 * 1024 * 1024)
    refused = bring(visit(world.olga), "/reconciliation/days/", raw, account=str(account.pk))
    assert refused.status_code == 422 and "larger than 20 MB; nothing of it was taken" in refused.content.decode()
    assert not Statement.objects.exists()


def test_another_tenants_day_is_not_there(books: Books, visit: Visit) -> None:
    """M04: by no address, no method, and in no list."""
    books.take(books.line(books.refund(2500)))
    row, bea = books.row(), visit(books.world.bea)
    bea.client.handler.enforce_csrf_checks = False
    assert bea.get(address(row)).status_code == 404
    for act in ("close", "upload"):
        assert bea.send(address(row, act), {"seen_sha256": "x"}).status_code == 404
    assert address(row) not in bea.text("/reconciliation/days/")


def test_the_list_is_walked_by_position_and_filtered(world: World, books: Books, visit: Visit) -> None:
    """C48: every day once; by account and state; an unknown value is no filter."""
    account = Account.objects.get(tenant=world.amber, ref="stripe")
    first = date(2026, 1, 1)
    made = {
        str(StatementDay.objects.create(tenant=world.amber, account=account, day=first + timedelta(days=n)).pk)
        for n in range(120)
    }
    bank(world)
    olga, path, met = visit(world.olga), "/reconciliation/days/?account=stripe", list[str]()
    while path:
        text = olga.text(path)
        met += re.findall(r'class="row-link" href="/reconciliation/days/([0-9a-f-]{36})/"', text)
        found = re.search(r'href="(/reconciliation/days/\?[^"]*cursor=[^"]*)" rel="next"', text)
        path = found.group(1).replace("&amp;", "&") if found else ""
    assert len(met) == 120 and set(met) == made
    assert "No day is like this" in olga.text("/reconciliation/days/?account=bank")
    assert "No day is like this" in olga.text("/reconciliation/days/?state=closed")
    assert 'class="row-link"' in olga.text("/reconciliation/days/?state=on&account=nowhere")
    assert olga.get("/reconciliation/days/?cursor=x").status_code == 400


def test_the_list_asks_as_much_for_many_days_as_for_one(world: World, books: Books, visit: Visit) -> None:
    """Lesson 28."""
    account, olga, counts = Account.objects.get(tenant=world.amber, ref="stripe"), visit(world.olga), list[int]()
    for n in range(2):
        for each in range(1 + 20 * n):
            day = date(2026, 1 + n, 1) + timedelta(days=each)
            StatementDay.objects.create(tenant=world.amber, account=account, day=day)
        with CaptureQueriesContext(connection) as asked:
            olga.text("/reconciliation/days/")
        counts.append(len(asked))
    assert counts[0] == counts[1] and counts[0] <= 20
