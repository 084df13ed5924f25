from __future__ import annotations

from django.db import models
from django.db.models import Q

from runtime_app.models.columns import key, now_column
from runtime_app.models.task import Task
from runtime_app.models.tenant import Tenant
from runtime_app.money import MAX_MINOR
from runtime_app.states import UNRESOLVED, OperationState

_RESOLVED = ["succeeded", "failed", "not_executed", "returned"]


class Operation(models.Model):
    """One business side effect at a provider. Its id is derived, and is the provider-facing reference and key."""

    id = models.UUIDField(primary_key=True, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT)
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="operations")
    effect = models.CharField(max_length=40)
    ordinal = models.PositiveIntegerField()
    account = models.CharField(max_length=80)
    order_ref = models.CharField(max_length=200)
    payment_ref = models.CharField(max_length=200)
    amount_minor = models.BigIntegerField()
    currency = models.CharField(max_length=3)
    exponent = models.PositiveSmallIntegerField()
    idempotency_key = models.CharField(max_length=255)
    request_body = models.BinaryField()
    request_sha256 = models.CharField(max_length=64)
    api_version = models.CharField(max_length=60)
    authority = models.JSONField()
    fingerprint = models.CharField(max_length=64)

    state = models.CharField(max_length=20, choices=[(s.value, s.value) for s in OperationState])
    provider_ref = models.CharField(max_length=200, null=True, blank=True)  # noqa: DJ001 - NULL until known
    first_submit_at = models.DateTimeField(null=True, blank=True)
    last_possible_send_at = models.DateTimeField(null=True, blank=True)
    next_check_at = models.DateTimeField(null=True, blank=True)
    checks = models.PositiveIntegerField(default=0)
    absents = models.PositiveIntegerField(default=0)
    resends = models.PositiveIntegerField(default=0)
    resend_disabled = models.BooleanField(default=False)
    case_class = models.CharField(max_length=40, null=True, blank=True)  # noqa: DJ001 - NULL means no case
    note = models.CharField(max_length=300, blank=True, default="")
    resolved_by = models.ForeignKey(
        "runtime_app.Evidence", on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    created_at = now_column()

    class Meta:
        default_permissions = ()
        constraints = [
            models.CheckConstraint(
                condition=Q(amount_minor__gte=1, amount_minor__lte=MAX_MINOR), name="operation_amount_positive"
            ),
            models.UniqueConstraint(
                fields=["tenant", "account", "payment_ref"], condition=Q(state__in=sorted(UNRESOLVED)),
                name="one_unresolved_submission_per_payment",
            ),
            models.UniqueConstraint(
                fields=["tenant", "account", "provider_ref"], condition=Q(provider_ref__isnull=False),
                name="one_operation_per_provider_ref",
            ),
            models.UniqueConstraint(fields=["account", "idempotency_key"], name="one_operation_per_key"),
            models.UniqueConstraint(fields=["task", "effect", "ordinal"], name="one_operation_per_ordinal"),
            models.CheckConstraint(
                condition=~Q(state__in=_RESOLVED) | Q(resolved_by__isnull=False), name="operation_end_has_evidence"
            ),
        ]
        indexes = [
            models.Index(
                fields=["tenant", "next_check_at"], name="operation_unresolved",
                condition=Q(state__in=sorted(UNRESOLVED)),
            ),
            models.Index(
                fields=["next_check_at"], name="operation_watched",
                condition=Q(state__in=_RESOLVED, next_check_at__isnull=False),
            ),
            models.Index(fields=["tenant", "account", "provider_ref"], name="operation_provider_ref"),
            models.Index(fields=["tenant", "account", "payment_ref"], name="operation_payment"),
        ]

    def __str__(self) -> str:
        return f"{self.effect} of {self.payment_ref} ({self.state})"


class Call(models.Model):
    """One request to a provider, written down before the socket is opened."""

    id = key()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT)
    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, related_name="calls")
    kind = models.CharField(max_length=20, choices=[(k, k) for k in ("submit", "resend", "query", "cancel")])
    fence = models.BigIntegerField()
    started_at = now_column()
    ended_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(  # noqa: DJ001 - NULL until an answer is recorded
        max_length=20, null=True, blank=True,
        choices=[(o, o) for o in ("succeeded", "pending", "declined", "not_sent", "unknown")],
    )
    finding = models.CharField(max_length=40, blank=True, default="")

    class Meta:
        default_permissions = ()
        indexes = [models.Index(fields=["operation", "started_at"], name="call_operation")]

    def __str__(self) -> str:
        return f"{self.kind}: {self.outcome}"


class Evidence(models.Model):
    """What was seen of an operation or of a payment, by whom and how completely; never changed."""

    id = key()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT)
    operation = models.ForeignKey(
        Operation, on_delete=models.PROTECT, null=True, blank=True, related_name="evidence"
    )
    case = models.ForeignKey(
        "runtime_app.Case", on_delete=models.PROTECT, null=True, blank=True, related_name="evidence"
    )
    call = models.ForeignKey(Call, on_delete=models.PROTECT, null=True, blank=True, related_name="evidence")
    kind = models.CharField(max_length=30)
    finding = models.CharField(max_length=40)
    request_line = models.CharField(max_length=300, blank=True, default="")
    http_status = models.PositiveSmallIntegerField(null=True, blank=True)
    provider_request_id = models.CharField(max_length=120, blank=True, default="")
    body_sha256 = models.CharField(max_length=64, blank=True, default="")
    body = models.JSONField(null=True, blank=True)
    pages = models.PositiveIntegerField(default=1)
    complete = models.BooleanField(default=True)
    consistency = models.CharField(max_length=10, default="strong")
    adapter_version = models.CharField(max_length=60, blank=True, default="")
    api_version = models.CharField(max_length=60, blank=True, default="")
    observed_at = now_column()

    class Meta:
        default_permissions = ()
        indexes = [models.Index(fields=["operation", "observed_at"], name="evidence_operation")]

    def __str__(self) -> str:
        return f"{self.kind}: {self.finding}"
