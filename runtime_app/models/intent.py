from __future__ import annotations

from django.db import models
from django.db.models import Q

from runtime_app.models.columns import key, now_column
from runtime_app.models.task import Task
from runtime_app.models.tenant import Tenant


class Intent(models.Model):
    """Something that must leave the system, committed with the change that asks for it."""

    id = key()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT)
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="intents")
    kind = models.CharField(max_length=40)
    dedup_key = models.CharField(max_length=200, unique=True)
    payload = models.JSONField()
    due_at = models.DateTimeField(null=True, blank=True, db_default=models.Func(function="runtime_now"))
    tries = models.PositiveIntegerField(default=0)
    done_at = models.DateTimeField(null=True, blank=True)
    last_error = models.CharField(max_length=300, blank=True, default="")
    created_at = now_column()

    class Meta:
        default_permissions = ()
        indexes = [
            models.Index(fields=["due_at"], name="intent_due", condition=Q(done_at__isnull=True, due_at__isnull=False))
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.dedup_key}"
