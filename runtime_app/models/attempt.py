from __future__ import annotations

from django.db import models

from runtime_app.models.columns import key, now_column
from runtime_app.models.task import Task
from runtime_app.models.tenant import Tenant


class Attempt(models.Model):
    """One execution of a task under one lease; the fence names it within its task."""

    id = key()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_constraint=False, db_index=False)
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="attempts", db_index=False)
    fence = models.BigIntegerField()
    worker = models.CharField(max_length=120)
    workflow_version = models.PositiveIntegerField()
    schema_version = models.PositiveIntegerField()
    prompt_version = models.CharField(max_length=64, blank=True, default="")
    started_at = now_column()

    class Meta:
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["task", "fence"], name="one_attempt_per_fence")]

    def __str__(self) -> str:
        return f"attempt {self.fence} of {self.task_id}"


class Step(models.Model):
    """A unit of work inside an attempt, recorded with what it decided."""

    id = key()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_constraint=False, db_index=False)
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="steps", db_index=False)
    fence = models.BigIntegerField()
    name = models.CharField(max_length=60)
    outcome = models.CharField(max_length=60)
    active_ms = models.FloatField()
    ended_at = now_column()

    class Meta:
        default_permissions = ()
        indexes = [models.Index(fields=["task", "fence"], name="step_task")]

    def __str__(self) -> str:
        return f"{self.name}: {self.outcome}"
