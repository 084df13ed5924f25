from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

from runtime_app.models.columns import now_column
from runtime_app.models.task import Task
from runtime_app.models.tenant import Tenant

if TYPE_CHECKING:
    _BigInteger = models.BigIntegerField[int, int]
else:
    _BigInteger = models.BigIntegerField


class TransactionIdField(_BigInteger):
    """PostgreSQL's xid8: unlike an identity it can be compared with the oldest transaction still open."""

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        return "xid8"

    def from_db_value(self, value: object, *_: object) -> int | None:
        return None if value is None else int(str(value))


class Event(models.Model):
    """Something that happened to a task. The record is never changed; its payload may be pruned, its digest stays."""

    pk = models.CompositePrimaryKey("task_id", "seq")
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="events", db_index=False)
    seq = models.PositiveIntegerField()
    # Held equal to the task's tenant by the trigger that also refuses gaps: one set-based check, not one a row.
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_constraint=False, db_index=False)
    type = models.CharField(max_length=60)
    actor = models.CharField(max_length=200)
    at = now_column()
    payload_sha256 = models.BinaryField(max_length=32)
    chain = models.BinaryField(max_length=32)
    # The writing transaction: with it a tenant-wide stream reads only what can no longer be overtaken.
    txid = TransactionIdField(db_default=models.Func(function="pg_current_xact_id"), editable=False)

    class Meta:
        default_permissions = ()
        indexes = [models.Index(fields=["tenant", "txid", "task", "seq"], name="event_stream")]

    def __str__(self) -> str:
        return f"{self.seq} {self.type}"


class EventPayload(models.Model):
    """What an event said beyond its type; retention may remove it."""

    pk = models.CompositePrimaryKey("task_id", "seq")
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="event_payloads", db_index=False)
    seq = models.PositiveIntegerField()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_constraint=False, db_index=False)
    data = models.JSONField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"payload {self.seq}"
