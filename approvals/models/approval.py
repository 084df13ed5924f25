"""What was asked of people, and what each of them said."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from approvals.models.policy import Policy
from runtime_app.models.columns import key, now_column
from runtime_app.models.task import Task
from runtime_app.models.tenant import Tenant

OPEN = "open"
STATES = (OPEN, "approved", "rejected", "input_asked", "expired", "cancelled", "superseded")
VERDICTS = ("approve", "reject", "ask_input")


class Approval(models.Model):
    """A question to people about one exact action. `facts` is what they are shown, `fingerprint` binds it, `rules` is
    what of the policy it was asked under, which never changes.
    """

    id = key()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT)
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="approvals")
    state = models.CharField(max_length=12, choices=[(s, s) for s in STATES])
    fingerprint = models.CharField(max_length=64)
    facts = models.JSONField()
    policy_version = models.PositiveIntegerField()
    policy = models.ForeignKey(Policy, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    rules = models.JSONField(default=dict, db_default={})
    quorum = models.PositiveSmallIntegerField(default=1)  # people of all reviews together
    deadline_at = models.DateTimeField()
    claimed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    claimed_at = models.DateTimeField(null=True, blank=True)
    remind_at = models.DateTimeField(null=True, blank=True)  # NULL again once it was done
    escalate_at = models.DateTimeField(null=True, blank=True)
    escalated_at = models.DateTimeField(null=True, blank=True)
    asked_at = now_column()
    closed_at = models.DateTimeField(null=True, blank=True)
    closed_why = models.CharField(max_length=300, blank=True, default="")

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["task"], condition=Q(state=OPEN), name="one_open_approval_per_task"),
            models.CheckConstraint(condition=Q(state__in=STATES), name="approval_state_known"),
        ]
        indexes = [
            models.Index(fields=["tenant", "deadline_at", "id"], name="approval_inbox", condition=Q(state=OPEN)),
            models.Index(fields=["tenant", "closed_at", "id"], name="approval_closed", condition=~Q(state=OPEN)),
            models.Index(fields=["claimed_by", "deadline_at"], name="approval_claimed", condition=Q(state=OPEN)),
            models.Index(
                fields=["remind_at"], name="approval_remind", condition=Q(state=OPEN, remind_at__isnull=False)
            ),
            models.Index(
                fields=["escalate_at"], name="approval_escalate", condition=Q(state=OPEN, escalate_at__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"approval of {self.task_id} ({self.state})"


class Decision(models.Model):
    """What one person said to one approval, with the right it rested on; for another who is away, when `for_person`.
    Of what was said only that it was taken back is written later.
    """

    id = key()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT)
    approval = models.ForeignKey(Approval, on_delete=models.PROTECT, related_name="decisions")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    for_person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    review = models.CharField(max_length=40, default="approval", db_default="approval")
    verdict = models.CharField(max_length=10, choices=[(v, v) for v in VERDICTS])
    reason = models.CharField(max_length=1000, blank=True, default="")
    nonce = models.CharField(max_length=64)
    fingerprint = models.CharField(max_length=64)
    basis = models.JSONField()
    decided_at = now_column()
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["approval", "person"], condition=Q(withdrawn_at__isnull=True), name="one_decision_per_person"
            ),
            models.UniqueConstraint(
                fields=["approval", "for_person"], condition=Q(withdrawn_at__isnull=True, for_person__isnull=False),
                name="one_decision_for_a_person",
            ),
            models.UniqueConstraint(fields=["approval", "nonce"], name="one_decision_per_form"),
            models.CheckConstraint(condition=Q(verdict__in=VERDICTS), name="decision_verdict_known"),
            models.CheckConstraint(condition=~Q(verdict="reject") | ~Q(reason=""), name="rejection_has_a_reason"),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} by {self.person_id}"
