from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from runtime_app.models.account import Account
from runtime_app.models.columns import key, now_column
from runtime_app.models.operation import Operation
from runtime_app.models.task import Task
from runtime_app.models.tenant import Tenant


class Case(models.Model):
    """Something about money that a person must look at. `details` are the facts that opened it."""

    id = key()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT)
    class_name = models.CharField(max_length=40)
    severity = models.CharField(max_length=10, choices=[(s, s) for s in ("critical", "high", "normal")])
    state = models.CharField(max_length=10, choices=[("open", "open"), ("closed", "closed")], default="open")
    blocks = models.CharField(max_length=10, choices=[(b, b) for b in ("nothing", "payment", "order")])
    account = models.ForeignKey(Account, on_delete=models.PROTECT, null=True, blank=True)
    order_ref = models.CharField(max_length=200, blank=True, default="")
    payment_ref = models.CharField(max_length=200, blank=True, default="")
    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, null=True, blank=True, related_name="cases")
    task = models.ForeignKey(Task, on_delete=models.PROTECT, null=True, blank=True, related_name="cases")
    amount_minor = models.BigIntegerField(null=True, blank=True)
    currency = models.CharField(max_length=3, blank=True, default="")
    dedup_key = models.CharField(max_length=300)
    details = models.JSONField(default=dict)
    why = models.CharField(max_length=500, blank=True, default="")

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="cases"
    )
    deadline_at = models.DateTimeField()
    snoozed_until = models.DateTimeField(null=True, blank=True)
    opened_at = now_column()
    closed_at = models.DateTimeField(null=True, blank=True)
    closed_by = models.CharField(max_length=200, blank=True, default="")
    outcome = models.CharField(max_length=40, blank=True, default="")
    revision = models.PositiveIntegerField(default=1)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "dedup_key"], condition=Q(state="open"), name="one_open_case_per_matter"
            ),
            models.CheckConstraint(
                condition=Q(state="open", closed_at__isnull=True) | (Q(state="closed") & ~Q(outcome="")),
                name="closed_case_has_outcome",
            ),
        ]
        indexes = [
            models.Index(fields=["tenant", "deadline_at", "id"], name="case_open", condition=Q(state="open")),
            models.Index(fields=["tenant", "payment_ref"], name="case_payment"),
            models.Index(
                fields=["tenant", "order_ref"], name="case_blocks", condition=Q(state="open") & ~Q(blocks="nothing")
            ),
        ]

    def __str__(self) -> str:
        return f"{self.class_name} ({self.state})"


class CaseEntry(models.Model):
    """What somebody said or did about a case; never changed. A decision is bound to the evidence the person saw."""

    id = key()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT)
    case = models.ForeignKey(Case, on_delete=models.PROTECT, related_name="entries")
    kind = models.CharField(max_length=40)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True)
    actor = models.CharField(max_length=200)
    evidence_sha256 = models.CharField(max_length=64, blank=True, default="")
    data = models.JSONField(default=dict)
    at = now_column()

    class Meta:
        default_permissions = ()
        indexes = [models.Index(fields=["case", "at"], name="caseentry_case")]

    def __str__(self) -> str:
        return f"{self.kind} by {self.actor}"
