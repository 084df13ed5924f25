"""What the rules need to know of each line, read for all lines of a day at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction

from runtime_app import accounts, rows
from runtime_app.adapters.payments.types import LineKind, Observation
from runtime_app.ledger.calls import store_evidence
from runtime_app.ledger.cases import add_entry
from runtime_app.models import Account, Operation, StatementDay, StatementLine
from runtime_app.money import Money
from runtime_app.points import point
from runtime_app.reconciliation.classify import Facts, Ours
from runtime_app.statements import calendar, matching, reach
from runtime_app.statements.acts import told
from runtime_app.statements.matching import Named
from runtime_app.statements.storing import BOOKED
from runtime_app.states import OperationState
from runtime_app.timing import Timing

_BATCH = 200  # lines whose owners are written down in one short transaction


@dataclass(slots=True)
class Gathered:
    """By the line's id. `cases`: by line and class, the newest case of its operation, or of the refund it names."""

    facts: dict[UUID, Facts]
    operations: Mapping[UUID, Operation]
    cases: Mapping[tuple[UUID, str], UUID]
    account: Account
    day: StatementDay
    _unshown: list[Operation] | None = None

    def unshown(self) -> list[Operation]:
        """Operations around this day that no line shows, read when first asked for."""
        if self._unshown is None:
            self._unshown = matching.unshown(self.account, *calendar.window(self.account, self.day.day))
        return self._unshown


def seen(line: StatementLine, day: StatementDay) -> Observation:
    """A line as evidence."""
    return Observation(
        request_line=f"statement of {day.day}, line {line.ref}", http_status=None, provider_request_id=None,
        body_sha256=line.raw_sha256[:64], body=dict(told(line)), api_version=line.statement.source,
        adapter_version=reach.provider(day.account.provider).adapter_version, complete=not line.statement.trouble,
    )


def link(
    account: Account, day: StatementDay, lines: Sequence[StatementLine], named: Mapping[UUID, Named]
) -> None:
    """Write down whose each line is, with the line as evidence of that operation, once."""
    fresh = [(line, owner) for line in lines
             if (owner := named[line.id].operation) is not None and line.operation_id is None]
    for line in lines:
        vars(line)["named"] = named[line.id]
    for begin in range(0, len(fresh), _BATCH):
        _link(account, day, fresh[begin:begin + _BATCH])
    for line, owner in fresh:
        line.operation = owner


def _link(account: Account, day: StatementDay, fresh: Sequence[tuple[StatementLine, Operation]]) -> None:
    by_id = {line.id: (line, owner) for line, owner in fresh}
    with transaction.atomic(durable=True):
        now = calendar.now()
        linked = rows.run(
            "UPDATE runtime_app_statementline AS l SET operation_id = w.operation"
            " FROM unnest(%s::uuid[], %s::uuid[]) AS w(id, operation) WHERE l.id = w.id AND l.operation_id IS NULL"
            " RETURNING l.id",
            [list(by_id), [owner.id for _, owner in fresh]],
        )
        for (id,) in linked:
            line, owner = by_id[id]
            finding = "came_back" if line.amount_minor > 0 else "booked"
            store_evidence(
                tenant_id=account.tenant_id, now=now, kind="statement_line", finding=finding, seen=seen(line, day),
                operation_id=owner.id,
            )
        _tell_waiting_cases(account, [by_id[id] for (id,) in linked], day, now)
        point("statements.link.commit")
    point("statements.link.committed")


def _tell_waiting_cases(
    account: Account, linked: Sequence[tuple[StatementLine, Operation]], day: StatementDay, now: datetime
) -> None:
    """A case that says that no statement shows it is told when one does; a person closes it."""
    out = {owner.id: line for line, owner in linked if line.amount_minor < 0}
    found = rows.run(
        "SELECT id, operation_id FROM runtime_app_case WHERE operation_id = ANY(%s) AND state = 'open'"
        " AND class_name = 'MISSING_AT_PROVIDER'",
        [list(out)],
    )
    for case_id, operation_id in found:
        add_entry(
            case_id, tenant_id=account.tenant_id, kind="line_came", actor="system", now=now,
            data={"day": day.day.isoformat(), "line": out[operation_id].ref},
        )


def gather(account: Account, day: StatementDay, lines: Sequence[StatementLine], timing: Timing) -> Gathered:
    owned = {line.id: line.operation for line in lines if line.operation is not None}
    operations = {o.id: o for o in owned.values()}
    together = matching.together(operations)
    asked = _asked(list(operations))
    looked = _looked(account, lines)
    cases = _cases_of_operations(list(operations))
    outside = _outside(account, lines)
    capabilities = reach.provider(account.provider).capabilities(accounts.opened(account))
    overdue = calendar.is_overdue(account, day.day, timing)
    facts = {}
    for line in lines:
        operation = owned.get(line.id)
        since = line.statement.taken_at
        answered = asked.get(operation.id) if operation else looked.get(line.payment_ref)
        facts[line.id] = Facts(
            kind=LineKind(line.kind), amount=Money(line.amount_minor, line.currency),
            ours=_ours(operation, cases) if operation else None,
            payment_ref=matching.same_payment(line.payment_ref, operation.payment_ref) if operation else "",
            known_outside=line.id in outside, elsewhere=vars(line)["named"].elsewhere,
            other_mode=line.live is not None and line.live != (account.mode == "live"),
            dressed=bool(line.fee_minor) or BOOKED in line.note,
            place=together[operation.id].places.get(line.id, 1) if operation else 1,
            nets_out=operation is not None and together[operation.id].total == 0,
            can_ask=reach.can_ask(capabilities),
            can_ask_payment=bool(line.payment_ref) and capabilities.reads_payments and _is_known(line, looked),
            asked=answered is not None and answered > since, overdue=overdue,
        )
    by_line = {(line_id, name): id for line_id, o in owned.items() for name, id in cases.get(o.id, {}).items()}
    by_line |= {(line_id, "EXTERNAL_REFUND"): id for line_id, id in outside.items()}
    return Gathered(facts, owned, by_line, account, day)


def _ours(operation: Operation, cases: Mapping[UUID, Mapping[str, UUID]]) -> Ours:
    return Ours(
        OperationState(operation.state), Money(operation.amount_minor, operation.currency), operation.payment_ref,
        frozenset(cases.get(operation.id, ())),
    )


def _asked(operations: list[UUID]) -> dict[UUID, datetime]:
    """When the provider last told something of these operations, or a line spoke in its place."""
    found = rows.run(
        "SELECT operation_id, max(observed_at) FROM runtime_app_evidence WHERE operation_id = ANY(%s)"
        " AND ((kind = 'provider_query' AND finding NOT IN ('inconclusive', 'no_lookup'))"
        " OR (kind = 'statement_line' AND finding LIKE 'found%%')) GROUP BY operation_id",
        [operations],
    )
    return {row[0]: row[1] for row in found}


def _is_known(line: StatementLine, looked: Mapping[str, datetime | None]) -> bool:
    return line.payment_ref in looked


def _looked(account: Account, lines: Sequence[StatementLine]) -> dict[str, datetime | None]:
    """When the payments that we know were last looked at as a whole; None: never."""
    refs = sorted({line.payment_ref for line in lines if line.payment_ref and line.operation is None})
    found = rows.run(
        "SELECT b.payment_ref, l.looked_at FROM runtime_app_balance b LEFT JOIN runtime_app_paymentlook l"
        " ON l.account_id = %s AND l.payment_ref = b.payment_ref"
        " WHERE b.tenant_id = %s AND b.account = %s AND b.payment_ref = ANY(%s)",
        [account.id, account.tenant_id, account.ref, refs],
    )
    return {row[0]: row[1] for row in found}


def _cases_of_operations(operations: list[UUID]) -> dict[UUID, dict[str, UUID]]:
    found = rows.run(
        "SELECT operation_id, class_name, id FROM runtime_app_case WHERE operation_id = ANY(%s) ORDER BY opened_at",
        [operations],
    )
    cases: dict[UUID, dict[str, UUID]] = defaultdict(dict)
    for operation_id, class_name, id in found:
        cases[operation_id][class_name] = id
    return cases


def _outside(account: Account, lines: Sequence[StatementLine]) -> dict[UUID, UUID]:
    """Lines whose refund a look at the payment has found already, with its case."""
    keys = {f"EXTERNAL_REFUND:{account.ref}:{line.provider_ref}"[:300]: line.id for line in lines
            if line.provider_ref and line.operation is None}
    found = rows.run(
        "SELECT dedup_key, id FROM runtime_app_case WHERE tenant_id = %s AND dedup_key = ANY(%s) ORDER BY opened_at",
        [account.tenant_id, list(keys)],
    )
    return {keys[key]: id for key, id in found}
