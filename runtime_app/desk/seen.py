"""What the person saw when deciding, held against what is so now."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from runtime_app.desk.actions import offer
from runtime_app.desk.situation import Situation
from runtime_app.errors import Conflict, FieldErrors, Forbidden, RuntimeAppError
from runtime_app.models import CaseEntry, User

_NOTHING = "nothing was recorded"
_DID = {
    "asked": "asked for something in this case", "declared": "declared",
    "acknowledged": "acknowledged it", "closed": "closed it", "compensated": "asked for a follow-up",
    "assigned": "gave the case to somebody", "snoozed": "put the case away", "commented": "wrote a comment",
}


@dataclass(frozen=True, slots=True)
class Seen:
    """`sha256` None: what is done does not rest on the evidence."""

    revision: int
    sha256: str | None


def seen(revision: object, sha256: object, *, decides: bool) -> Seen:
    """Raises FieldErrors for what no page can have shown."""
    errors: dict[str, str] = {}
    if type(revision) is not int or not 0 < revision < 2**31:
        errors["revision"] = "Use the revision you saw, a whole number."
    if not isinstance(sha256, str) or (decides and not re.fullmatch(r"[0-9a-f]{64}", sha256)):
        errors["seen_sha256"] = "Use the digest of the evidence you saw, 64 hexadecimal digits."
    if errors:
        raise FieldErrors(errors)
    assert isinstance(revision, int) and isinstance(sha256, str)
    return Seen(revision, sha256 if decides else None)


def stale(s: Situation, saw: Seen) -> bool:
    return s.case.revision != saw.revision or saw.sha256 not in (None, s.evidence_sha256)


def objection(s: Situation, person: User, action: str, saw: Seen) -> RuntimeAppError | None:
    """What stands against this person doing this now, as the error that says so."""
    offered = offer(s, person, action)
    if offered.personal:
        return Forbidden(offered.why)
    if stale(s, saw):
        return changed(s, saw)
    if not offered.allowed:
        return Conflict(f"{offered.why} That is why {_NOTHING}.", **facts(s), opens_at=offered.opens_at)
    return None


def changed(s: Situation, saw: Seen) -> Conflict:
    last = next((entry for entry in reversed(s.entries) if entry.kind in _DID), None)
    if s.case.revision != saw.revision and last is not None:
        who = last.person.shown_name if last.person is not None else "The system"
        return Conflict(f"{who} {_DID[last.kind]} while you were looking; {_NOTHING}.", **facts(s, last))
    if s.case.revision != saw.revision:
        return Conflict(f"The case changed while you were looking; {_NOTHING}.", **facts(s))
    return Conflict(f"The evidence is not what you saw any more: {_newest(s)}. Look again; {_NOTHING}.", **facts(s))


def _newest(s: Situation) -> str:
    if s.last_complete is None:
        return "more is known of it"
    return f"the last complete look says “{s.last_complete.finding.replace('_', ' ')}”"


def facts(s: Situation, last: CaseEntry | None = None) -> dict[str, Any]:
    told: dict[str, Any] = {
        "case_id": str(s.case.id), "state": s.case.state, "revision": s.case.revision,
        "evidence_sha256": s.evidence_sha256,
    }
    if last is not None:
        told |= {"by": last.actor, "at": last.at, "kind": last.kind}
    return told
