"""What we, the provider and the order system each say of one refund, side by side, with what differs marked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runtime_app.console import words
from runtime_app.console.tags import money_words, printable
from runtime_app.models import Balance, Case, Operation
from runtime_app.states import OperationState

REFUNDS_MOST = 4  # more of the provider's refunds than these are counted, not shown


@dataclass(frozen=True, slots=True)
class Refund:
    """A refund as the provider has shown it."""

    ref: str
    payment_ref: str
    amount_minor: int
    currency: str
    status: str


@dataclass(frozen=True, slots=True)
class Cell:
    """`ident` is shown short, with a copy; `differs`: it is not what our record says."""

    text: str = ""
    ident: str = ""
    differs: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    label: str
    cells: tuple[Cell, ...]

    @property
    def differs(self) -> bool:
        return any(cell.differs for cell in self.cells)


@dataclass(frozen=True, slots=True)
class Sides:
    """`heads` are the columns: ours, one or more of the provider's, the order system's. `more`: refunds not shown."""

    heads: tuple[str, ...]
    rows: tuple[Row, ...]
    more: int = 0


def compare(
    operation: Operation | None, case: Case | None, balance: Balance | None, shown: Sequence[Refund], absent: bool
) -> Sides:
    """`absent`: the last complete look showed no such refund."""
    refunds = tuple(shown[:REFUNDS_MOST])
    heads = (_("Our record"), *_provider_heads(len(refunds)), _("Order system"))
    rows = [*_refund_rows(operation, case, balance, refunds, absent), *_money_rows(balance, max(1, len(refunds)))]
    return Sides(heads, tuple(rows), more=len(shown) - len(refunds))


def of_operation(operation: Operation) -> tuple[Refund, ...]:
    """What a proof shows: it counts only when every field was as asked for."""
    proved = {OperationState.SUCCEEDED: "succeeded", OperationState.PENDING: "pending",
              OperationState.RETURNED: "failed"}
    if operation.provider_ref is None or operation.state not in proved:
        return ()
    status = proved[OperationState(operation.state)]
    return (Refund(operation.provider_ref, operation.payment_ref, operation.amount_minor, operation.currency, status),)


def of_case(case: Case) -> tuple[Refund, ...]:
    """What the provider had shown when the case was opened."""
    told: Any = case.details.get("refunds") if isinstance(case.details, dict) else None
    return tuple(
        Refund(str(r.get("ref", "")), str(r.get("payment_ref", "")), r["amount_minor"], str(r.get("currency", "")),
               str(r.get("status", "")))
        for r in (told if isinstance(told, list) else []) if isinstance(r, dict) and type(r.get("amount_minor")) is int
    )


def _provider_heads(number: int) -> Iterable[str]:
    if number <= 1:
        return (_("Provider"),)
    return tuple(_("Provider, refund %(n)s") % {"n": n + 1} for n in range(number))


def _refund_rows(
    operation: Operation | None, case: Case | None, balance: Balance | None, refunds: tuple[Refund, ...], absent: bool
) -> Iterable[Row]:
    about = operation or case
    order, payment = (about.order_ref, about.payment_ref) if about else ("", "")
    told = printable(balance.order_ref) if balance else ""
    theirs = balance.payment_ref if balance else ""
    yield _row(_("Order"), printable(order), ["" for _each in refunds or (None,)], told, ours=printable(order))
    yield _row(_("Payment"), printable(payment), [printable(r.payment_ref) for r in refunds] or [""],
               printable(theirs), ours=printable(payment))
    amount = money_words(operation.amount_minor, operation.currency) if operation else ""
    yield _row(_("Amount"), amount or _("nothing of ours"),
               [money_words(r.amount_minor, r.currency) for r in refunds] or [""], "", ours=amount)
    yield _state_row(operation, refunds, absent)
    ids = (Cell(ident=str(operation.id)) if operation else Cell(), *_ids(operation, refunds), Cell())
    yield Row(_("Reference"), ids)


def _row(label: str, own: str, provider: Iterable[str], order: str, *, ours: str) -> Row:
    """What differs is marked where somebody says something else than we do; silence is no difference."""
    others = [Cell(text, differs=bool(ours and text and text != ours)) for text in (*provider, order)]
    return Row(label, (Cell(own), *others))


def _ids(operation: Operation | None, refunds: tuple[Refund, ...]) -> tuple[Cell, ...]:
    known = operation.provider_ref if operation else None
    return tuple(Cell(ident=r.ref, differs=bool(known) and r.ref != known) for r in refunds) or (Cell(),)


_AGREES = {
    OperationState.SUCCEEDED: {"succeeded", "booked"}, OperationState.PENDING: {"pending", "requires_action"},
    OperationState.FAILED: {"failed", "canceled"}, OperationState.RETURNED: {"failed", "canceled"},
    OperationState.NOT_EXECUTED: {"canceled"},
}


def _state_row(operation: Operation | None, refunds: tuple[Refund, ...], absent: bool) -> Row:
    state = OperationState(operation.state) if operation else None
    agrees = _AGREES.get(state, set()) if state else set()
    own = str(words.look(words.OPERATION, operation.state).word) if operation else _("nothing of ours")
    if not refunds:
        nothing = _("no such refund") if absent else ""
        return Row(_("State"), (Cell(own), Cell(nothing, differs=absent and state == OperationState.SUCCEEDED), Cell()))
    cells = [Cell(status(r.status), differs=bool(agrees) and r.status not in agrees)
             for r in refunds]
    return Row(_("State"), (Cell(own), *cells, Cell()))


def status(value: str) -> str:
    """What the provider calls a refund's state, in our words."""
    return str(_STATUS.get(value, printable(value)))


_STATUS = {
    "succeeded": gettext_lazy("done"), "pending": gettext_lazy("accepted, not settled"),
    "requires_action": gettext_lazy("waits for somebody there"), "failed": gettext_lazy("failed there"),
    "canceled": gettext_lazy("cancelled there"), "booked": gettext_lazy("booked on a statement"),
}


def _money_rows(balance: Balance | None, columns: int) -> Iterable[Row]:
    """The payment as a whole. A provider that shows more made outside of us than the order system knows, or less,
    differs."""
    if balance is None:
        return
    blank = tuple(Cell() for _ in range(columns - 1))

    def said(minor: int, differs: bool = False) -> Cell:
        return Cell(money_words(minor, balance.currency), differs=differs)

    yield Row(_("Captured"), (Cell(), Cell(), *blank, said(balance.captured_minor)))
    yield Row(_("Refunded by us"), (said(balance.refunded_minor), Cell(), *blank, Cell()))
    yield Row(_("Held for refunds"), (said(balance.reserved_minor), Cell(), *blank, Cell()))
    provider, order = balance.external_provider_minor, balance.external_order_minor
    yield Row(_("Refunded outside of us"), (said(balance.external_minor), said(provider, provider != order), *blank,
                                            said(order, provider != order)))
    if balance.excess_minor:
        yield Row(_("More than was captured"), (said(balance.excess_minor, True), Cell(), *blank, Cell()))
    yield Row(_("Can still be refunded"), (said(balance.remaining_minor), Cell(), *blank, Cell()))
