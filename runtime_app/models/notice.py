from __future__ import annotations

from django.db import models
from django.db.models import Q

from runtime_app.models.account import Account
from runtime_app.models.columns import key, now_column
from runtime_app.models.tenant import Tenant


class Notice(models.Model):
    """A signed notice of a provider, stored before it was answered. It is a hint to go and ask, never a state."""

    id = key()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT)
    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="notices")
    event_id = models.CharField(max_length=200)
    kind = models.CharField(max_length=80)
    refund_ref = models.CharField(max_length=200, blank=True, default="")
    operation_ref = models.CharField(max_length=200, blank=True, default="")
    payment_ref = models.CharField(max_length=200, blank=True, default="")
    says = models.CharField(max_length=40, blank=True, default="")
    occurred_at = models.DateTimeField(null=True, blank=True)
    body_sha256 = models.CharField(max_length=64)
    received_at = now_column()
    deliveries = models.PositiveIntegerField(default=1)
    due_at = models.DateTimeField(null=True, blank=True)
    tries = models.PositiveIntegerField(default=0)
    handled_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=300, blank=True, default="")

    class Meta:
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["account", "event_id"], name="one_notice_per_event")]
        indexes = [
            models.Index(fields=["due_at"], name="notice_due", condition=Q(due_at__isnull=False)),
            models.Index(fields=["tenant", "-received_at"], name="notice_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.event_id}"


class PaymentLook(models.Model):
    """A payment whose refunds at the provider are to be compared with ours."""

    id = key()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT)
    account = models.ForeignKey(Account, on_delete=models.PROTECT)
    payment_ref = models.CharField(max_length=200)
    why = models.CharField(max_length=200, blank=True, default="")
    due_at = models.DateTimeField(null=True, blank=True)
    tries = models.PositiveIntegerField(default=0)
    looked_at = models.DateTimeField(null=True, blank=True)
    found = models.JSONField(default=dict)

    class Meta:
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["account", "payment_ref"], name="one_look_per_payment")]
        indexes = [models.Index(fields=["due_at"], name="payment_look_due", condition=Q(due_at__isnull=False))]

    def __str__(self) -> str:
        return f"look at {self.payment_ref}"
