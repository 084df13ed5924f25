from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from runtime_app.models.columns import key, now_column
from runtime_app.models.task import Task
from runtime_app.models.tenant import Tenant


class Balance(models.Model):
    """What may still be refunded of one payment, all its refunds together."""

    id = key()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT)
    account = models.CharField(max_length=80)
    order_ref = models.CharField(max_length=200)
    payment_ref = models.CharField(max_length=200)
    currency = models.CharField(max_length=3)
    captured_minor = models.BigIntegerField()
    reserved_minor = models.BigIntegerField(default=0)
    refunded_minor = models.BigIntegerField(default=0)
    # Refunded outside of us: the larger of what the order system and what the provider tells.
    external_minor = models.BigIntegerField(default=0)
    external_order_minor = models.BigIntegerField(default=0, db_default=0)
    external_provider_minor = models.BigIntegerField(default=0, db_default=0)
    excess_minor = models.BigIntegerField(default=0)
    read_version = models.BigIntegerField(default=0)
    read_at = now_column()

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["tenant", "account", "payment_ref"], name="one_balance_per_payment"),
            models.CheckConstraint(
                condition=Q(captured_minor__gte=0, reserved_minor__gte=0, refunded_minor__gte=0, external_minor__gte=0,
                            excess_minor__gte=0),
                name="balance_not_negative",
            ),
            models.CheckConstraint(
                condition=Q(captured_minor__gte=F("reserved_minor") + F("refunded_minor") + F("external_minor")
                            - F("excess_minor")),
                name="balance_within_captured",
            ),
        ]
        indexes = [models.Index(fields=["tenant", "order_ref"], name="balance_order")]

    def __str__(self) -> str:
        return f"{self.payment_ref}: {self.remaining_minor} {self.currency}"

    @property
    def remaining_minor(self) -> int:
        return max(0, self.captured_minor - self.reserved_minor - self.refunded_minor - self.external_minor)


class Hold(models.Model):
    """A reserved part of a balance; it leaves only by proof or by the state table."""

    id = key()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT)
    balance = models.ForeignKey(Balance, on_delete=models.PROTECT, related_name="holds")
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="holds")
    amount_minor = models.BigIntegerField()
    state = models.CharField(max_length=10, choices=[(s, s) for s in ("held", "consumed", "released", "returned")])
    taken_at = now_column()
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        default_permissions = ()
        constraints = [
            models.CheckConstraint(condition=Q(amount_minor__gte=1), name="hold_amount_positive"),
            models.UniqueConstraint(fields=["task"], condition=Q(state="held"), name="one_hold_per_task"),
        ]

    def __str__(self) -> str:
        return f"{self.amount_minor} {self.state}"
