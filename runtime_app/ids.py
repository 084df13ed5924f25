"""Ids: random but time-ordered for rows, derived for operations."""

from __future__ import annotations

from uuid import UUID, uuid5

import uuid6

# Wire format: changing it makes a restored task send a second refund.
OPERATIONS = UUID("5a0f6f0c-6f0e-5d0b-9f7e-0d6a3c1b7e21")


def new_id() -> UUID:
    """A UUIDv7; made here because PostgreSQL before 18 and Python before 3.14 have none."""
    return UUID(int=uuid6.uuid7().int)


def operation_id(*, tenant: str, workflow: str, request_key: str, effect: str, ordinal: int) -> UUID:
    """The same request makes the same operation, also after a restore."""
    return uuid5(OPERATIONS, "\x1f".join((tenant, workflow, request_key, effect, str(ordinal))))
