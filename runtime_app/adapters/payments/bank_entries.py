"""The entries of a bank's statement as lines: what is ours, what came back, and everything else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from zoneinfo import ZoneInfo

from runtime_app.adapters.payments.bank_pain import operation_ref
from runtime_app.adapters.payments.bank_xml import Node, Refused
from runtime_app.adapters.payments.types import LineKind, StatementLine
from runtime_app.money import Money

REF_MOST = 200
_NOT_GIVEN = ("NOTPROVIDED", "NONREF")
# Credit transfers that were sent, the instant ones too; a debit of another kind is a charge or a collection.
_SENT = ("ICDT", "IRCT")
_RETURNED = "RRTN"


@dataclass(frozen=True, slots=True)
class _Day:
    day: date
    currency: str
    zone: ZoneInfo


def read_entries(statement: Node, *, day: date, currency: str, zone: ZoneInfo) -> tuple[StatementLine, ...]:
    """Every booked entry, one line for each payment in it. Raises Refused for the first that cannot be read."""
    about = _Day(day, currency, zone)
    id_of_statement = statement.need("Id")
    return tuple(
        line
        for number, entry in enumerate(statement.all("Ntry", "entry"), 1)
        for line in _lines(entry, f"{id_of_statement}/{number}", about)
    )


def _lines(entry: Node, place: str, about: _Day) -> Iterator[StatementLine]:
    status = entry.text("Sts/Cd", "Sts")
    if status != "BOOK":
        raise Refused(f"{entry.where} is not booked ({(status or 'no status')[:10]}); ask for a statement of what is.")
    total = _in_currency(entry, about)
    payments = [detail for details in entry.all("NtryDtls") for detail in details.all("TxDtls")]
    # NtryRef is no reference for this: many banks begin it anew with every statement.
    ref = _given(entry, "AcctSvcrRef") or place
    if len(payments) < 2:
        yield _line(entry, payments[0] if payments else entry, total, ref, about)
        return
    amounts = [_part(payment, entry, about) for payment in payments]
    if sum(amount.minor for amount in amounts) != total.minor:
        raise Refused(f"{entry.where}: its {len(payments)} payments do not add up to it.")
    for number, (payment, amount) in enumerate(zip(payments, amounts, strict=True), 1):
        yield _line(entry, payment, amount, _given(payment, "Refs/AcctSvcrRef") or f"{ref}/{number}", about)


def _in_currency(entry: Node, about: _Day) -> Money:
    amount = entry.signed()
    if amount.currency != about.currency:
        raise Refused(f"{entry.where} is in {amount.currency}, not in {about.currency}.")
    return amount


def _part(payment: Node, entry: Node, about: _Day) -> Money:
    """The amount of one payment of several in an entry. Its side is the entry's where it says none."""
    node = Node(payment.element, entry.where)
    if node.one("CdtDbtInd") is not None:
        return _in_currency(node, about)
    amount = node.money("Amt")
    if amount.currency != about.currency:
        raise Refused(f"{entry.where} has a payment in {amount.currency}, not in {about.currency}.")
    return amount if entry.need("CdtDbtInd") == "CRDT" else Money(-amount.minor, amount.currency)


def _line(entry: Node, payment: Node, amount: Money, ref: str, about: _Day) -> StatementLine:
    # Some banks give money that comes back the reference with which it left.
    ref = f"{ref}/CRDT" if amount.minor > 0 else ref
    end_to_end_id = _given(payment, "Refs/EndToEndId")
    if max(len(ref), len(end_to_end_id or "")) > REF_MOST:
        raise Refused(f"{entry.where}: its reference is longer than {REF_MOST} characters.")
    ours = operation_ref(end_to_end_id) if end_to_end_id else None
    booked, valued = _booked(entry, about), entry.moment("ValDt/Dt", "ValDt/DtTm")
    return StatementLine(
        ref=ref, kind=_kind(entry, payment, amount, ours), amount=amount, occurred_at=booked,
        raw_sha256=payment.digest, provider_ref=end_to_end_id, our_ref=ours,
        settled_on=valued.date() if valued else booked.date(),
    )


def _given(node: Node, path: str) -> str | None:
    told = node.text(path)
    return None if told in _NOT_GIVEN else told


def _kind(entry: Node, payment: Node, amount: Money, ours: str | None) -> LineKind:
    family = entry.text("BkTxCd/Domn/Fmly/Cd")
    came_back = (
        payment.one("RtrInf") is not None or entry.text("RvslInd") in ("true", "1")
        or entry.text("BkTxCd/Domn/Fmly/SubFmlyCd") == _RETURNED
    )
    if amount.minor > 0:
        return LineKind.REFUND_FAILED if ours or came_back else LineKind.OTHER
    sent = (family is None or family in _SENT) and not came_back
    return LineKind.REFUND if ours or sent else LineKind.OTHER


def _booked(entry: Node, about: _Day) -> datetime:
    """When it was booked. A bank that tells only the day means its own: the day's first instant there."""
    at = entry.moment("BookgDt/DtTm", "BookgDt/Dt")
    if at is None:
        raise Refused(f"{entry.where} has no booking date.")
    if at.date() > about.day:
        raise Refused(f"{entry.where} was booked on {at.date()}, after the statement's day {about.day}.")
    return at if at.tzinfo else at.replace(tzinfo=about.zone)
