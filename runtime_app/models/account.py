from __future__ import annotations

from django.db import models
from django.db.models import Q

from runtime_app.models.columns import key, now_column
from runtime_app.models.tenant import Tenant


class Account(models.Model):
    """A tenant's account at a payment provider. Its secrets are stored sealed and never shown again."""

    id = key()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="accounts")
    ref = models.CharField(max_length=80)
    provider = models.CharField(max_length=40)
    mode = models.CharField(max_length=4, choices=[("test", "test"), ("live", "live")], default="test")
    base_url = models.CharField(max_length=300, blank=True, default="")
    settings = models.JSONField(default=dict, blank=True)
    time_zone = models.CharField(max_length=60, default="UTC")
    is_default = models.BooleanField(default=False)
    api_key_sealed = models.TextField(blank=True, default="")
    notice_secrets_sealed = models.TextField(blank=True, default="")  # a JSON list, newest first
    secrets_changed_at = models.DateTimeField(null=True, blank=True)
    closed_at = models.DateTimeField(null=True, blank=True)
    created_at = now_column()

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["tenant", "ref"], name="one_account_per_ref"),
            models.UniqueConstraint(
                fields=["tenant"], condition=Q(is_default=True), name="one_default_account_per_tenant"
            ),
            models.CheckConstraint(condition=Q(ref__regex=r"^[a-z][a-z0-9_-]{0,79}$"), name="account_ref_ascii"),
            models.CheckConstraint(
                # A bank gives no notices, and may know its customers by their network.
                condition=~Q(mode="live") | Q(provider="bank")
                | (~Q(api_key_sealed="") & ~Q(notice_secrets_sealed="")),
                name="live_account_has_secrets",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.ref} ({self.provider}, {self.mode})"


class AccountPace(models.Model):
    """How fast an account's provider may be asked, and whether it answers at all. One row an account, often written."""

    account = models.OneToOneField(Account, on_delete=models.CASCADE, primary_key=True, related_name="pace")
    tokens = models.FloatField(default=0)
    refilled_at = now_column()
    troubles = models.PositiveIntegerField(default=0)  # answers in a row that told nothing
    closed_until = models.DateTimeField(null=True, blank=True)  # nobody asks before then
    sweep_due_at = models.DateTimeField(null=True, blank=True)
    sweep_since = models.DateTimeField(null=True, blank=True)
    swept_at = models.DateTimeField(null=True, blank=True)  # when the last reading of the whole list began

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"pace of {self.account_id}"
