from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from approvals.models.approval import Approval
from runtime_app.models.columns import key, now_column
from runtime_app.models.tenant import Tenant

WHATS = (
    "asked", "reminder", "escalated", "handed_over", "input_asked", "decided", "superseded", "expired", "cancelled",
)
STATES = ("waiting", "sent", "dropped", "dead")
DIGESTS = ("at_once", "hourly", "daily")


class WebhookEndpoint(models.Model):
    """An address of the tenant's own that is told of approvals, each message signed with the endpoint's secret."""

    id = key()
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    url = models.CharField(max_length=500)
    secret_sealed = models.TextField()
    is_active = models.BooleanField(default=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = now_column()

    class Meta:
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["tenant", "url"], name="one_endpoint_per_url")]

    def __str__(self) -> str:
        return self.url


class Preferences(models.Model):
    """How a person is told: by mail or not, how soon, and between which times of the person's own day not at all."""

    person = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="preferences"
    )
    mail = models.BooleanField(default=True)
    digest = models.CharField(max_length=10, default="at_once", choices=[(d, d) for d in DIGESTS])
    quiet_from = models.TimeField(null=True, blank=True)
    quiet_to = models.TimeField(null=True, blank=True)

    class Meta:
        default_permissions = ()
        constraints = [
            models.CheckConstraint(condition=Q(digest__in=DIGESTS), name="digest_known"),
            models.CheckConstraint(
                condition=Q(quiet_from__isnull=True, quiet_to__isnull=True)
                | Q(quiet_from__isnull=False, quiet_to__isnull=False),
                name="quiet_hours_have_both_ends",
            ),
        ]

    def __str__(self) -> str:
        return f"preferences of {self.person_id}"


class Delivery(models.Model):
    """One thing to be told about an approval to one person or one endpoint, until it is sent, dropped or given up."""

    id = key()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT)
    approval = models.ForeignKey(Approval, on_delete=models.PROTECT, related_name="deliveries")
    what = models.CharField(max_length=20, choices=[(w, w) for w in WHATS])
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    endpoint = models.ForeignKey(
        WebhookEndpoint, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    dedup_key = models.CharField(max_length=200, unique=True)
    state = models.CharField(max_length=10, default="waiting", choices=[(s, s) for s in STATES])
    due_at = models.DateTimeField(null=True, blank=True)
    tries = models.PositiveIntegerField(default=0)
    last_error = models.CharField(max_length=300, blank=True, default="")
    created_at = now_column()
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        default_permissions = ()
        constraints = [
            models.CheckConstraint(condition=Q(what__in=WHATS), name="delivery_what_known"),
            models.CheckConstraint(condition=Q(state__in=STATES), name="delivery_state_known"),
        ]
        indexes = [
            models.Index(fields=["due_at"], name="delivery_due", condition=Q(state="waiting")),
            models.Index(fields=["approval", "created_at"], name="delivery_approval"),
        ]

    def __str__(self) -> str:
        return f"{self.what} ({self.state})"
