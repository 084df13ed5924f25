from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from runtime_app.models.columns import key, now_column
from runtime_app.models.tenant import Tenant

STATES = ("proposed", "in_force", "replaced", "refused", "withdrawn")


class Policy(models.Model):
    """One version of a tenant's rules for a workflow. What it says never changes; a second person put it in force."""

    id = key()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT)
    workflow = models.CharField(max_length=40)
    number = models.PositiveIntegerField()
    rules = models.JSONField()
    why = models.CharField(max_length=500)
    state = models.CharField(max_length=10, choices=[(s, s) for s in STATES])
    proposed_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    proposed_at = now_column()
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    decided_at = models.DateTimeField(null=True, blank=True)
    decided_why = models.CharField(max_length=500, blank=True, default="")
    # When nothing that was asked under earlier rules was open any more.
    asked_anew_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["tenant", "number"], name="one_policy_per_number"),
            models.UniqueConstraint(
                fields=["tenant", "workflow"], condition=Q(state="in_force"), name="one_policy_in_force"
            ),
            models.UniqueConstraint(
                fields=["tenant", "workflow"], condition=Q(state="proposed"), name="one_policy_proposed"
            ),
            models.CheckConstraint(
                condition=~Q(state__in=["in_force", "replaced"])
                | (Q(decided_by__isnull=False) & ~Q(decided_by=F("proposed_by"))),
                name="policy_agreed_by_a_second_person",
            ),
            models.CheckConstraint(condition=Q(state__in=STATES), name="policy_state_known"),
        ]

    def __str__(self) -> str:
        return f"{self.workflow} policy {self.number} ({self.state})"
