from __future__ import annotations

from django.conf import settings
from django.db import models

from runtime_app.models.account import Account
from runtime_app.models.case import Case
from runtime_app.models.columns import key, now_column
from runtime_app.models.operation import Operation
from runtime_app.models.tenant import Tenant


class StatementDay(models.Model):
    """One day of one account: closed by a person, or open with its cases."""

    id = key()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT)
    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="days")
    day = models.DateField()
    state = models.CharField(max_length=10, choices=[("open", "open"), ("closed", "closed")], default="open")
    trouble = models.CharField(max_length=300, blank=True, default="")  # why what came in is not the whole day
    due_at = models.DateTimeField(null=True, blank=True)  # when the provider is asked for it next
    tries = models.PositiveIntegerField(default=0)
    totals = models.JSONField(default=dict)
    closed_at = models.DateTimeField(null=True, blank=True)
    closed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    created_at = now_column()

    class Meta:
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["account", "day"], name="one_day_per_account")]
        indexes = [models.Index(fields=["due_at"], name="statement_day_due")]

    def __str__(self) -> str:
        return f"{self.day} ({self.state})"


class Statement(models.Model):
    """What came in for a day, once per content: the same bytes again add nothing."""

    id = key()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT)
    day = models.ForeignKey(StatementDay, on_delete=models.PROTECT, related_name="statements")
    source = models.CharField(max_length=20)
    sha256 = models.CharField(max_length=64)
    sequence = models.CharField(max_length=60, blank=True, default="")
    opening_minor = models.BigIntegerField(null=True, blank=True)
    closing_minor = models.BigIntegerField(null=True, blank=True)
    currency = models.CharField(max_length=3, blank=True, default="")
    lines_told = models.PositiveIntegerField(default=0)
    lines_new = models.PositiveIntegerField(default=0)
    trouble = models.CharField(max_length=300, blank=True, default="")
    taken_at = now_column()
    taken_by = models.CharField(max_length=200)

    class Meta:
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["day", "sha256"], name="one_statement_per_content")]

    def __str__(self) -> str:
        return f"{self.source} of {self.day_id}"


class StatementLine(models.Model):
    """One booking as the provider tells it, and how it compares with what we know."""

    id = key()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT)
    account = models.ForeignKey(Account, on_delete=models.PROTECT)
    statement = models.ForeignKey(Statement, on_delete=models.PROTECT, related_name="lines")
    day = models.ForeignKey(StatementDay, on_delete=models.PROTECT, related_name="lines")
    ref = models.CharField(max_length=200)
    kind = models.CharField(max_length=20)
    amount_minor = models.BigIntegerField()  # signed: negative left the account
    currency = models.CharField(max_length=3)
    fee_minor = models.BigIntegerField(null=True, blank=True)
    provider_ref = models.CharField(max_length=200, blank=True, default="")
    our_ref = models.CharField(max_length=200, blank=True, default="")
    payment_ref = models.CharField(max_length=200, blank=True, default="")
    occurred_at = models.DateTimeField()
    settled_on = models.DateField(null=True, blank=True)
    live = models.BooleanField(null=True, blank=True)
    raw_sha256 = models.CharField(max_length=64)

    class_name = models.CharField(max_length=40, blank=True, default="")  # empty: not compared yet
    note = models.CharField(max_length=300, blank=True, default="")
    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, null=True, blank=True, related_name="lines")
    case = models.ForeignKey(Case, on_delete=models.PROTECT, null=True, blank=True, related_name="lines")
    compared_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["account", "ref"], name="one_line_per_ref")]
        indexes = [
            models.Index(fields=["operation"], name="statement_line_operation"),
            models.Index(fields=["day", "class_name"], name="statement_line_class"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.ref}"
