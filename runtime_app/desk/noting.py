"""What is written into a case without being a decision."""

from __future__ import annotations

import re

from django.db import transaction

from runtime_app import access, rows
from runtime_app.desk.reading import read
from runtime_app.errors import FieldErrors
from runtime_app.ledger.cases import add_entry
from runtime_app.models import User


def export_noted(person: User, case_id: object, *, sha256: str) -> None:
    """Write down that this person took the evidence bundle of this digest. Needs only the right to see the case."""
    if not re.fullmatch(r"[0-9a-f]{64}", sha256):
        raise FieldErrors({"sha256": "Use a digest of 64 hexadecimal digits."})
    access.forget(person)
    s = read(person, case_id)
    with transaction.atomic(durable=True):
        add_entry(
            s.case.id, tenant_id=s.case.tenant_id, kind="exported", actor=access.actor(person), person_id=person.pk,
            now=rows.run("SELECT runtime_now()")[0][0], data={"sha256": sha256}, evidence_sha256=s.evidence_sha256,
        )
