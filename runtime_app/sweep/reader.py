"""Reading an account's list, page by page, and handing over what is certainly complete."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from uuid import UUID

from runtime_app import accounts, rows
from runtime_app.adapters.payments.types import (
    Deadline,
    Inconclusive,
    Observation,
    ProviderAccount,
    ProviderRefund,
    RefundPage,
)
from runtime_app.ledger.pace_rows import WORTH_A_SWEEP
from runtime_app.reconciliation.pace import LOOK, hear
from runtime_app.sweep.record import Seen, record
from runtime_app.sweep.turn import Lost, Turn, give_back, keep, take_page, tell
from runtime_app.workflows.types import Ports

_FEW = 10  # so few are looked at one by one, even after an outage
_AT_ONCE = 100  # tasks recorded together
_WAIT_MOST = 1.0  # seconds; then the lease is renewed and the pace asked again


@dataclass(slots=True)
class Sought:
    """An operation in doubt, and what the list has shown of it so far, by the provider's reference."""

    task_id: UUID
    since: datetime  # nothing of it is older than this
    refunds: dict[str, ProviderRefund] = field(default_factory=dict)
    seen: Observation | None = None  # the page on which it was found first


def sweep(turn: Turn, ports: Ports, actor: str, stop: threading.Event) -> None:
    """Sweep the account and give it back. Raises database errors; the lease then ends by itself."""
    try:
        account = accounts.of_tenants([turn.tenant_id]).get(turn.tenant_id, {}).get(turn.account)
        if account is None or account.provider not in ports.providers:
            give_back(turn, again_in=None, whole=False)
            return
        sought = _sought(turn, ports) if ports.provider(account).capabilities(account).sweeps else {}
        again_in, whole = _read(turn, account, sought, ports, actor, stop) if len(sought) > _FEW else (None, False)
    except Lost:
        return
    give_back(turn, again_in=again_in, whole=whole)


def _sought(turn: Turn, ports: Ports) -> dict[str, Sought]:
    """Of the last day: older ones are few, people's by then, and would have every page of the time between read."""
    found = rows.run(
        "SELECT o.id::text, o.task_id, o.first_submit_at - make_interval(secs => %s) FROM runtime_app_operation o"
        " JOIN runtime_app_task t ON t.id = o.task_id AND t.ordinal = o.ordinal"
        " JOIN runtime_app_accountpace p ON p.account_id = %s WHERE o.tenant_id = %s"
        " AND o.account = %s AND o.effect = 'refund' AND o.state IN ('pending', 'unknown')"
        " AND o.next_check_at IS NOT NULL AND t.status = 'reconciling' AND t.parked_reason IS NULL"
        f" AND {WORTH_A_SWEEP} AND o.first_submit_at > runtime_now() - make_interval(secs => %s)",
        [ports.timing.sweep_margin, turn.account_id, *turn.key, ports.timing.handover],
    )
    return {row[0]: Sought(row[1], row[2]) for row in found}


def _read(
    turn: Turn, account: ProviderAccount, sought: dict[str, Sought], ports: Ports, actor: str, stop: threading.Event
) -> tuple[float | None, bool]:
    """Read on until all is seen. Returns in how many seconds to begin again, None when there is no need to; and whether
    all was read that is worth it.
    """
    since = min(one.since for one in sought.values())
    pages_most = max(_FEW, int(LOOK * len(sought)))  # beyond that, looks one by one cost less
    cursor: str | None = None
    known: set[str] = set()
    for _ in range(pages_most):
        if (later := _turn_of_page(turn, ports, stop)) is not None:
            return later, False
        page = ports.provider(account).list_refunds(
            account, payment_ref=None, since=since, cursor=cursor, deadline=Deadline.after(_answer_within(ports))
        )
        tell(turn, hear(page), ports.timing)
        if isinstance(page, Inconclusive):
            return (ports.timing.closed_first if hear(page).trouble else None), False
        refs = {refund.ref for refund in page.refunds}
        if known & refs:
            return None, True  # pages that do not follow each other prove nothing, the next time neither
        known |= refs
        reached, cursor = _note(page, sought), page.next_cursor
        if cursor is None or reached is not None:
            _hand_over(turn, sought, None if cursor is None else reached, ports, actor, stop)
        if cursor is None:
            break
    return (0.0, False) if stop.is_set() else (None, True)


def _turn_of_page(turn: Turn, ports: Ports, stop: threading.Event) -> float | None:
    """Wait until a page may be read; the seconds after which to begin the sweep again, when it may not be soon."""
    while not stop.is_set():
        later = take_page(turn, ports.timing)
        if later is None:
            return None
        if later.closed:
            return later.seconds
        stop.wait(min(_WAIT_MOST, later.seconds))
    return 0.0


def _answer_within(ports: Ports) -> float:
    return ports.timing.connect_timeout + ports.timing.read_timeout


def _note(page: RefundPage, sought: Mapping[str, Sought]) -> datetime | None:
    """Note whose the page's refunds are. Returns the time back to which the list is known; None when it does not say.
    """
    for refund in page.refunds:
        if (one := sought.get(refund.operation_ref or "")) is not None:
            one.refunds[refund.ref] = refund
            one.seen = one.seen or page.seen
    times = [refund.created_at for refund in page.refunds if refund.created_at is not None]
    in_order = len(times) == len(page.refunds) and all(later >= earlier for later, earlier in pairwise(times))
    return times[-1] if times and in_order else None


def _hand_over(
    turn: Turn, sought: dict[str, Sought], reached: datetime | None, ports: Ports, actor: str, stop: threading.Event
) -> None:
    """Record those of which nothing more can come: the list is known back to before their first request."""
    ready = [id for id, one in sought.items() if one.refunds and (reached is None or one.since > reached)]
    for some in batched(ready, _AT_ONCE):
        if stop.is_set():
            return
        keep(turn, ports.timing.lease)
        record([_seen(id, sought.pop(id)) for id in some], ports, actor)


def _seen(id: str, one: Sought) -> Seen:
    assert one.seen is not None  # it has refunds, so it was on a page
    return Seen(UUID(id), one.task_id, tuple(one.refunds.values()), one.seen)


def batched(ids: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), size):
        yield ids[start:start + size]
