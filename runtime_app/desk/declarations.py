"""What a first person has declared, and whether it still counts."""

from __future__ import annotations

from collections.abc import Sequence

from runtime_app import access
from runtime_app.desk.situation import Declaration
from runtime_app.models import Case, CaseEntry


def declarations(
    case: Case, entries: Sequence[CaseEntry], evidence_sha256: str
) -> tuple[Declaration | None, Declaration | None]:
    """The declaration that counts, and the newest one that does not any more.

    One counts while the evidence is what the person saw and the person may still work cases here.
    """
    made = [e for e in entries if e.kind == "declared" and e.person is not None]
    rights = access.rights_of({e.person_id for e in made if e.person_id is not None})
    counts: Declaration | None = None
    outdated: Declaration | None = None
    for entry in made:
        declared = _typed(entry)
        allowed = (entry.person_id, case.tenant_id, "work_reconciliation") in rights
        if allowed and entry.evidence_sha256 == evidence_sha256:
            counts = counts or declared
        else:
            outdated = declared
    return counts, outdated


def _typed(entry: CaseEntry) -> Declaration:
    assert entry.person is not None
    said = entry.data
    return Declaration(entry, str(said["what"]), str(said["code"]), str(said["reason"]), entry.person)
