from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from runtime_app.models.columns import key, now_column
from runtime_app.models.person import ServiceAccount
from runtime_app.models.session import Session
from runtime_app.models.tenant import Tenant
from runtime_app.money import MAX_MINOR
from runtime_app.states import FINAL, Parked, Status

_STATUSES = [s.value for s in Status]


class Task(models.Model):
    """One business goal: the authority on how far it has come.

    `due_at` is when somebody should look next: now for work, a timer for a wait, the lease's end for a claimed task,
    and NULL for an end. It is the task's next-step intent, committed with the status.
    """

    id = key()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False)
    session = models.ForeignKey(Session, on_delete=models.PROTECT, null=True, blank=True, related_name="tasks")
    workflow = models.CharField(max_length=40)
    workflow_version = models.PositiveIntegerField()
    schema_version = models.PositiveIntegerField(default=1)
    prompt_version = models.CharField(max_length=64, blank=True, default="")
    lane = models.CharField(max_length=20, default="default")

    request_key = models.CharField(max_length=200)
    request_sha256 = models.CharField(max_length=64)
    service_account = models.ForeignKey(ServiceAccount, on_delete=models.PROTECT, null=True, blank=True)
    requester = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True)

    status = models.CharField(max_length=20, choices=[(s.value, s.value) for s in Status])
    status_since = now_column()
    revision = models.PositiveIntegerField(default=1)
    fence = models.BigIntegerField(default=0)
    lease_owner = models.CharField(max_length=120, null=True, blank=True)  # noqa: DJ001 - NULL means unclaimed
    due_at = models.DateTimeField(null=True, blank=True)
    starts = models.PositiveIntegerField(default=0)
    ordinal = models.PositiveIntegerField(default=1)
    parked_reason = models.CharField(  # noqa: DJ001 - NULL means not parked
        max_length=30, null=True, blank=True, choices=[(p.value, p.value) for p in Parked]
    )
    attention = models.CharField(max_length=30, null=True, blank=True)  # noqa: DJ001 - NULL means none
    last_error = models.CharField(max_length=300, blank=True, default="")

    order_ref = models.CharField(max_length=200, blank=True, default="")
    payment_ref = models.CharField(max_length=200, null=True, blank=True)  # noqa: DJ001 - not given
    amount_minor = models.BigIntegerField(null=True, blank=True)
    currency = models.CharField(max_length=3, null=True, blank=True)  # noqa: DJ001 - not given
    reason = models.CharField(max_length=500, null=True, blank=True)  # noqa: DJ001 - not given
    metadata = models.JSONField(default=dict)
    state = models.JSONField(default=dict)
    fingerprint = models.CharField(max_length=64, blank=True, default="")

    cancel_wished_at = models.DateTimeField(null=True, blank=True)
    cancel_wished_by = models.CharField(max_length=200, blank=True, default="")
    cancel_reason = models.CharField(max_length=500, blank=True, default="")

    event_seq = models.PositiveIntegerField(default=0)
    event_head = models.BinaryField(max_length=32, default=b"")
    created_at = now_column()

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["tenant", "request_key"], name="one_task_per_request_key"),
            models.CheckConstraint(condition=Q(status__in=_STATUSES), name="task_status_known"),
            models.CheckConstraint(
                condition=Q(amount_minor__isnull=True) | Q(amount_minor__gte=1, amount_minor__lte=MAX_MINOR),
                name="task_amount_positive",
            ),
            models.CheckConstraint(
                condition=Q(currency__isnull=True) | Q(currency__regex=r"^[A-Z]{3}$"), name="task_currency_code"
            ),
            models.CheckConstraint(
                condition=Q(payment_ref__isnull=True) | ~Q(payment_ref=""), name="task_payment_not_empty"
            ),
            models.CheckConstraint(
                condition=~Q(status__in=sorted(FINAL)) | Q(due_at__isnull=True, lease_owner__isnull=True),
                name="task_end_has_no_next_step",
            ),
        ]
        indexes = [
            models.Index(
                fields=["lane", "due_at"], name="task_due",
                condition=Q(due_at__isnull=False, parked_reason__isnull=True),
            ),
            models.Index(fields=["tenant", "-created_at", "-id"], name="task_newest"),
            models.Index(fields=["tenant", "status", "-created_at", "-id"], name="task_status_newest"),
            models.Index(fields=["tenant", "order_ref"], name="task_order"),
            models.Index(fields=["tenant", "payment_ref"], name="task_payment"),
            models.Index(fields=["parked_reason"], name="task_parked", condition=Q(parked_reason__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.workflow} {self.order_ref} ({self.status})"
