"""What may still be refunded of a payment, and who has reserved how much of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self
from uuid import UUID

from runtime_app import rows
from runtime_app.ids import new_id
from runtime_app.transitions import Kinds, Locked, Refusal

Payment = tuple[UUID, str, str]  # tenant, account, payment reference
_COLUMNS = (
    ("id", "uuid"), ("tenant_id", "uuid"), ("account", "text"), ("order_ref", "text"), ("payment_ref", "text"),
    ("currency", "text"), ("captured_minor", "bigint"), ("external_minor", "bigint"),
    ("external_order_minor", "bigint"), ("external_provider_minor", "bigint"), ("excess_minor", "bigint"),
    ("read_version", "bigint"), ("read_at", "timestamptz"), ("reserved_minor", "bigint"), ("refunded_minor", "bigint"),
)
# Balances are locked in this one order everywhere, the order in which Python sorts the same values.
_ORDER = 'b.tenant_id, b.account COLLATE "C", b.payment_ref COLLATE "C"'


def lock_first(kinds: Kinds) -> None:
    """Lock the balances of a batch whose parts do different things to them, in the one order; each kind by itself
    would lock its own, one kind after the other."""
    naming = KeepBalance | TakeHold | ConsumeLate | ReturnExcess
    by_name = {kind: _named(parts) for kind, parts in kinds if issubclass(kind, naming)}
    tasks = {row.id for kind, parts in kinds if issubclass(kind, EndHold | ReturnRefund) for row, _ in parts}
    kept, taken = by_name.get(KeepBalance, set()), by_name.get(TakeHold, set())
    later = set().union(*(names for kind, names in by_name.items() if issubclass(kind, ConsumeLate | ReturnExcess)))
    # What is kept and then taken from is one and the same, and by far the commonest.
    if bool(kept | taken) + bool(tasks) + bool(later) < 2 and (taken <= kept or not kept):
        return
    named = kept | taken | later
    tenants, accounts, refs = zip(*named, strict=True) if named else ((), (), ())
    rows.run(
        "WITH wanted AS MATERIALIZED (SELECT b.id FROM runtime_app_balance b"
        " JOIN unnest(%s::uuid[], %s::text[], %s::text[]) AS w(tenant, account, payment)"
        " ON b.tenant_id = w.tenant AND b.account = w.account AND b.payment_ref = w.payment"
        " UNION SELECT h.balance_id FROM runtime_app_hold h WHERE h.task_id = ANY(%s))"
        f" SELECT 1 FROM runtime_app_balance b WHERE b.id IN (SELECT id FROM wanted) ORDER BY {_ORDER}"
        " FOR NO KEY UPDATE",
        [list(tenants), list(accounts), list(refs), list(tasks)],
    )


def _named(parts: Sequence[tuple[Locked, Any]]) -> set[Payment]:
    return {(row.tenant_id, part.account, part.payment_ref) for row, part in parts}


@dataclass(frozen=True, slots=True)
class KeepBalance:
    """The balance as the order system tells it now; an older reading never replaces a newer one. Refused as
    `of_another_order`, naming it, when the payment is known as that order's: its refunds count there.

    `external_minor` is what the order system knows as refunded outside of us; what the provider has shown is kept
    beside it, and the larger of the two stands against the captured amount.
    """

    account: str
    order_ref: str
    payment_ref: str
    currency: str
    captured_minor: int
    external_minor: int
    version: int

    rank: ClassVar[int] = 30
    before: ClassVar[Callable[[Kinds], None]] = lock_first
    survives: ClassVar[bool] = False

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        newest: dict[Payment, tuple[Locked, Self]] = {}
        for row, part in wanted:
            payment = (row.tenant_id, part.account, part.payment_ref)
            if payment not in newest or newest[payment][1].version < part.version:
                newest[payment] = (row, part)
        ordered = sorted(newest.items(), key=lambda item: (str(item[0][0]), *item[0][1:]))
        kept = rows.insert(
            "runtime_app_balance AS b",
            _COLUMNS,
            [(new_id(), row.tenant_id, p.account, p.order_ref, p.payment_ref, p.currency, p.captured_minor,
              p.external_minor, p.external_minor, 0, max(0, p.external_minor - p.captured_minor), p.version, row.now,
              0, 0)
             for _, (row, p) in ordered],
            # More may have been refunded outside of us than we could allow: the excess is recorded, not hidden.
            "ON CONFLICT (tenant_id, account, payment_ref) DO UPDATE SET captured_minor = excluded.captured_minor,"
            " external_minor = greatest(excluded.external_minor, b.external_provider_minor),"
            " external_order_minor = excluded.external_minor, read_version = excluded.read_version,"
            " read_at = excluded.read_at, excess_minor = greatest(0, b.reserved_minor + b.refunded_minor"
            " + greatest(excluded.external_minor, b.external_provider_minor) - excluded.captured_minor)"
            " WHERE b.read_version <= excluded.read_version AND b.order_ref = excluded.order_ref"
            " RETURNING b.tenant_id, b.account, b.payment_ref",
        )
        stored = {(r[0], r[1], r[2]) for r in kept}
        others = _orders_of([payment for payment in newest if payment not in stored])
        return {
            row.id: Refusal("of_another_order", {"order_ref": order}) for row, part in wanted
            if (order := others.get((row.tenant_id, part.account, part.payment_ref), part.order_ref)) != part.order_ref
        }

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        return None


def _orders_of(payments: Sequence[Payment]) -> dict[Payment, str]:
    if not payments:
        return {}
    tenants, accounts, refs = zip(*payments, strict=True)
    found = rows.run(
        "SELECT b.tenant_id, b.account, b.payment_ref, b.order_ref FROM runtime_app_balance b"
        " JOIN unnest(%s::uuid[], %s::text[], %s::text[]) AS w(tenant, account, payment)"
        " ON b.tenant_id = w.tenant AND b.account = w.account AND b.payment_ref = w.payment",
        [list(tenants), list(accounts), list(refs)],
    )
    return {(r[0], r[1], r[2]): r[3] for r in found}


@dataclass(frozen=True, slots=True)
class TakeHold:
    """Reserve part of what remains; refused as `balance_too_small`, naming what remains."""

    account: str
    payment_ref: str
    amount_minor: int

    rank: ClassVar[int] = 31
    before: ClassVar[Callable[[Kinds], None]] = lock_first
    survives: ClassVar[bool] = False

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        remaining = _lock_balances([(row.tenant_id, p.account, p.payment_ref) for row, p in wanted])
        refused: dict[UUID, Refusal] = {}
        taken: dict[UUID, int] = {}
        for row, part in wanted:
            balance, left = remaining.get((row.tenant_id, part.account, part.payment_ref), (None, 0))
            if balance is None or part.amount_minor > left - taken.get(balance, 0):
                left_now = left - (taken.get(balance, 0) if balance else 0)
                refused[row.id] = Refusal("balance_too_small", {"remaining_minor": max(0, left_now)})
            else:
                taken[balance] = taken.get(balance, 0) + part.amount_minor
        if taken:
            # Summed per balance: one UPDATE that meets a row twice would apply only one of the two amounts.
            rows.run(
                "UPDATE runtime_app_balance AS b SET reserved_minor = b.reserved_minor + w.amount"
                " FROM unnest(%s::uuid[], %s::bigint[]) AS w(id, amount) WHERE b.id = w.id"
                " AND b.captured_minor - b.reserved_minor - b.refunded_minor - b.external_minor >= w.amount",
                [list(taken), list(taken.values())],
            )
        return refused

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        rows.run(
            "INSERT INTO runtime_app_hold (id, tenant_id, balance_id, task_id, amount_minor, state, taken_at)"
            " SELECT w.id, w.tenant, b.id, w.task, w.amount, 'held', w.at"
            " FROM unnest(%s::uuid[], %s::uuid[], %s::text[], %s::text[], %s::uuid[], %s::bigint[], %s::timestamptz[])"
            " AS w(id, tenant, account, payment, task, amount, at) JOIN runtime_app_balance b"
            " ON b.tenant_id = w.tenant AND b.account = w.account AND b.payment_ref = w.payment",
            [list(column) for column in zip(*[
                (new_id(), row.tenant_id, p.account, p.payment_ref, row.id, p.amount_minor, row.now)
                for row, p in wanted], strict=True)],
        )


def _lock_balances(payments: Sequence[Payment]) -> dict[Payment, tuple[UUID, int]]:
    tenants, accounts, refs = zip(*set(payments), strict=True)
    found = rows.run(
        "SELECT b.tenant_id, b.account, b.payment_ref, b.id,"
        " b.captured_minor - b.reserved_minor - b.refunded_minor - b.external_minor"
        " FROM runtime_app_balance b JOIN unnest(%s::uuid[], %s::text[], %s::text[]) AS w(tenant, account, payment)"
        " ON b.tenant_id = w.tenant AND b.account = w.account AND b.payment_ref = w.payment"
        f" ORDER BY {_ORDER} FOR NO KEY UPDATE OF b",
        [list(tenants), list(accounts), list(refs)],
    )
    return {(r[0], r[1], r[2]): (r[3], r[4]) for r in found}


@dataclass(frozen=True, slots=True)
class EndHold:
    """The task's hold, if it has one, is given back (`consumed` False) or turned into refunded money (True)."""

    consumed: bool

    rank: ClassVar[int] = 32
    before: ClassVar[Callable[[Kinds], None]] = lock_first
    survives: ClassVar[bool] = False

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        return {}

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        consumed = {row.id: part.consumed for row, part in wanted}
        held = rows.run(
            "SELECT h.id, h.task_id, h.balance_id, h.amount_minor FROM runtime_app_hold h"
            " JOIN runtime_app_balance b ON b.id = h.balance_id WHERE h.task_id = ANY(%s) AND h.state = 'held'"
            f" ORDER BY {_ORDER} FOR NO KEY UPDATE OF b, h",
            [list(consumed)],
        )
        if not held:
            return
        sums: dict[UUID, tuple[int, int]] = {}
        for _, task, balance, amount in held:
            freed, refunded = sums.get(balance, (0, 0))
            sums[balance] = (freed + amount, refunded + (amount if consumed[task] else 0))
        at = wanted[0][0].now
        rows.run(
            "UPDATE runtime_app_hold AS h SET state = w.state, ended_at = %s"
            " FROM unnest(%s::uuid[], %s::text[]) AS w(id, state) WHERE h.id = w.id",
            [at, [h[0] for h in held], ["consumed" if consumed[h[1]] else "released" for h in held]],
        )
        rows.run(
            # What is given back may be what was too much.
            "UPDATE runtime_app_balance AS b SET reserved_minor = b.reserved_minor - w.freed,"
            " refunded_minor = b.refunded_minor + w.refunded, excess_minor = greatest(0, b.reserved_minor - w.freed"
            " + b.refunded_minor + w.refunded + b.external_minor - b.captured_minor)"
            " FROM unnest(%s::uuid[], %s::bigint[], %s::bigint[]) AS w(id, freed, refunded) WHERE b.id = w.id",
            [list(sums), [s[0] for s in sums.values()], [s[1] for s in sums.values()]],
        )


@dataclass(frozen=True, slots=True)
class ConsumeLate:
    """So much of the task's has moved in all, although no hold stood for it; what exceeds the captured amount is
    recorded as such. What is counted already is not counted again, however often it is seen.
    """

    account: str
    payment_ref: str
    moved_minor: int

    rank: ClassVar[int] = 33
    before: ClassVar[Callable[[Kinds], None]] = lock_first
    survives: ClassVar[bool] = False

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        return {}

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        for row, part in wanted:  # one by one: this is rare, and two of one payment must both count
            rows.run(
                "WITH fresh AS (SELECT b.id, %s - coalesce((SELECT sum(h.amount_minor) FROM runtime_app_hold h"
                " WHERE h.balance_id = b.id AND h.task_id = %s AND h.state = 'consumed'), 0)::bigint AS minor"
                " FROM runtime_app_balance b WHERE b.tenant_id = %s AND b.account = %s AND b.payment_ref = %s),"
                " late AS (UPDATE runtime_app_balance AS b SET refunded_minor = b.refunded_minor + fresh.minor,"
                " excess_minor = " + _EXCESS.format(refunded="b.refunded_minor + fresh.minor",
                                                    external="b.external_minor")
                + " FROM fresh WHERE b.id = fresh.id AND fresh.minor > 0 RETURNING b.id, fresh.minor)"
                " INSERT INTO runtime_app_hold"
                " (id, tenant_id, balance_id, task_id, amount_minor, state, taken_at, ended_at)"
                " SELECT %s, %s, late.id, %s, late.minor, 'consumed', %s, %s FROM late",
                [part.moved_minor, row.id, row.tenant_id, part.account, part.payment_ref,
                 new_id(), row.tenant_id, row.id, row.now, row.now],
            )


@dataclass(frozen=True, slots=True)
class ReturnRefund:
    """Refunded money that came back: the task's consumed hold is returned, and may be refunded again."""

    rank: ClassVar[int] = 34
    before: ClassVar[Callable[[Kinds], None]] = lock_first
    survives: ClassVar[bool] = False

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        return {}

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        for row, _ in wanted:  # one by one: this is rare
            rows.run(
                "WITH back AS (UPDATE runtime_app_hold SET state = 'returned' WHERE task_id = %s AND state = 'consumed'"
                " RETURNING balance_id, amount_minor), sums AS (SELECT balance_id, sum(amount_minor)::bigint AS minor"
                " FROM back GROUP BY balance_id)"
                " UPDATE runtime_app_balance AS b SET refunded_minor = b.refunded_minor - sums.minor, excess_minor = "
                + _EXCESS.format(refunded="b.refunded_minor - sums.minor", external="b.external_minor")
                + " FROM sums WHERE b.id = sums.balance_id",
                [row.id],
            )


@dataclass(frozen=True, slots=True)
class ReturnExcess:
    """Of what counts as refunded by the task, only so much is still with the customer: what was taken last for more
    than that is given back, hold by hold, as far as whole ones go. Whoever comes second finds nothing to give back."""

    account: str
    payment_ref: str
    moved_minor: int

    rank: ClassVar[int] = 34
    before: ClassVar[Callable[[Kinds], None]] = lock_first
    survives: ClassVar[bool] = False

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        return {}

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        for row, part in wanted:  # one by one: this is rare
            rows.run(
                "WITH held AS (SELECT h.id, sum(h.amount_minor) OVER (ORDER BY h.taken_at DESC, h.id DESC) AS upto,"
                " sum(h.amount_minor) OVER () - %s AS most FROM runtime_app_hold h JOIN runtime_app_balance b"
                " ON b.id = h.balance_id WHERE h.task_id = %s AND h.state = 'consumed' AND b.tenant_id = %s"
                " AND b.account = %s AND b.payment_ref = %s), back AS (UPDATE runtime_app_hold AS h"
                " SET state = 'returned' FROM held WHERE h.id = held.id AND held.upto <= held.most"
                " RETURNING h.balance_id, h.amount_minor), sums AS (SELECT balance_id,"
                " sum(amount_minor)::bigint AS minor FROM back GROUP BY balance_id)"
                " UPDATE runtime_app_balance AS b SET refunded_minor = b.refunded_minor - sums.minor, excess_minor = "
                + _EXCESS.format(refunded="b.refunded_minor - sums.minor", external="b.external_minor")
                + " FROM sums WHERE b.id = sums.balance_id",
                [part.moved_minor, row.id, row.tenant_id, part.account, part.payment_ref],
            )


_EXCESS = "greatest(0, b.reserved_minor + {refunded} + {external} - b.captured_minor)"


def keep_provider_external(balance_id: UUID, external_minor: int) -> bool:
    """What the provider shows as refunded outside of us, from now on; False when it was known so already.

    Runs in the caller's transaction, which holds no task's row: balances are locked after tasks everywhere.
    """
    return bool(
        rows.run(
            "UPDATE runtime_app_balance AS b SET external_provider_minor = %s,"
            " external_minor = greatest(b.external_order_minor, %s), excess_minor = "
            + _EXCESS.format(refunded="b.refunded_minor", external="greatest(b.external_order_minor, %s)")
            + " WHERE b.id = %s AND b.external_provider_minor <> %s RETURNING b.id",
            [external_minor, external_minor, external_minor, balance_id, external_minor],
        )
    )
