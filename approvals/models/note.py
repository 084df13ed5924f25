from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from approvals.models.approval import Approval
from runtime_app.models.columns import key, now_column
from runtime_app.models.tenant import Tenant

KINDS = ("comment", "claimed", "released", "handed_over", "vote_withdrawn", "escalated")


class Note(models.Model):
    """What people did about an approval besides deciding it; never changed, and it changes no decision."""

    id = key()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT)
    approval = models.ForeignKey(Approval, on_delete=models.PROTECT, related_name="notes")
    kind = models.CharField(max_length=20, choices=[(k, k) for k in KINDS])
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    other = models.ForeignKey(  # to whom it was handed over
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    text = models.CharField(max_length=2000, blank=True, default="")
    at = now_column()

    class Meta:
        default_permissions = ()
        constraints = [models.CheckConstraint(condition=Q(kind__in=KINDS), name="note_kind_known")]
        indexes = [models.Index(fields=["approval", "at", "id"], name="note_approval")]

    def __str__(self) -> str:
        return f"{self.kind} by {self.person_id}"
