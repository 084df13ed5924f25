"""One digest of what the evidence of a case says: what a decision is bound to.

To look once more and see the same changes nothing; whatever is new changes it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from runtime_app import rows
from runtime_app.chronicle import canonical
from runtime_app.models import Case, Operation, StatementLine, Task
from runtime_app.reconciliation.table import Finding

# Answers that tell nothing of what happened. Absence tells the same however often it is seen.
_TELL_NOTHING = frozenset({
    Finding.INCONCLUSIVE, Finding.NO_LOOKUP, Finding.RESEND_IN_USE, Finding.RESEND_UNKNOWN, Finding.RESEND_ACCEPTED,
})
_CONCLUSIVE = frozenset(Finding) - _TELL_NOTHING
CONCLUSIVE = frozenset(finding.value for finding in _CONCLUSIVE)
_ASKED = ("provider_query", "provider_response")


def evidence_sha256(
    case: Case, operation: Operation | None, task: Task | None, *, sends: int, shown: Iterable[Mapping[str, Any]],
    lines: Iterable[StatementLine], others: Iterable[Case],
) -> str:
    said = {
        "case": str(case.id),
        "operation": operation and [str(operation.id), operation.state, operation.provider_ref],
        "sends": sends,
        "task": task and [task.status, task.cancel_wished_at is not None],
        "findings": _findings(case.id, operation.id if operation else None),
        "shown": sorted(canonical(one) for one in shown),
        "lines": sorted([line.ref, line.raw_sha256, line.class_name] for line in lines),
        "others": sorted(other.class_name for other in others),
    }
    return hashlib.sha256(canonical(said).encode()).hexdigest()


def _findings(case_id: UUID, operation_id: UUID | None) -> list[list[str]]:
    """Every distinct thing that was seen, with the digest of what showed it unless it is an absence."""
    found = rows.run(
        "SELECT DISTINCT kind, finding, CASE WHEN finding = 'absent' THEN '' ELSE body_sha256 END"
        " FROM runtime_app_evidence WHERE (operation_id = %s OR case_id = %s) AND kind <> 'human_attestation'"
        " AND (kind <> ALL(%s) OR finding = ANY(%s) OR operation_id IS NULL)",
        [operation_id, case_id, list(_ASKED), sorted(CONCLUSIVE)],
    )
    return sorted([kind if kind not in _ASKED else "", finding, sha256] for kind, finding, sha256 in found)
