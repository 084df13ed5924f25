from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from approvals.models.approval import Approval
from runtime_app.models.columns import key, now_column
from runtime_app.models.tenant import Tenant

RESULTS = ("chosen", "decided", "refused")


class Bulk(models.Model):
    """A selection of small approvals, frozen as it was shown, which one person decides together."""

    id = key()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    verdict = models.CharField(max_length=10, blank=True, default="")
    reason = models.CharField(max_length=1000, blank=True, default="")
    chosen_at = now_column()
    decided_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"bulk of {self.person_id}"


class BulkItem(models.Model):
    """One approval of the selection: what the person saw of it, and what came of deciding it."""

    id = key()
    bulk = models.ForeignKey(Bulk, on_delete=models.PROTECT, related_name="items")
    approval = models.ForeignKey(Approval, on_delete=models.PROTECT, related_name="+")
    fingerprint = models.CharField(max_length=64)
    revision = models.PositiveIntegerField()
    result = models.CharField(max_length=10, default="chosen", choices=[(r, r) for r in RESULTS])
    said = models.CharField(max_length=300, blank=True, default="")

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["bulk", "approval"], name="one_item_per_approval"),
            models.CheckConstraint(condition=Q(result__in=RESULTS), name="bulk_result_known"),
        ]

    def __str__(self) -> str:
        return f"{self.approval_id}: {self.result}"
