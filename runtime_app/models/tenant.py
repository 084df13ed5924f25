from __future__ import annotations

from django.db import models
from django.db.models import Q
from guardian.models import GroupObjectPermissionBase, UserObjectPermissionBase

from runtime_app.models.columns import key, now_column


class Tenant(models.Model):
    """A company whose tasks, people and money are apart from every other's."""

    id = key()
    slug = models.CharField(max_length=40, unique=True)
    name = models.CharField(max_length=120)
    time_zone = models.CharField(max_length=60, default="UTC")
    approval_threshold_minor = models.BigIntegerField(default=0)
    policy_version = models.PositiveIntegerField(default=1)
    suspended_at = models.DateTimeField(null=True, blank=True)
    created_at = now_column()

    class Meta:
        default_permissions = ()
        # Wire format: these strings stand in grants and in the basis stored with decisions.
        permissions = [
            ("see_tasks", "See tasks and their timelines"),
            ("request_tasks", "Ask for tasks"),
            ("supply_input", "Give missing input"),
            ("amend_tasks", "Amend requests"),
            ("cancel_tasks", "Cancel requests"),
            ("see_approvals", "See approvals"),
            ("decide_approvals", "Decide approvals"),
            ("see_reconciliation", "See the reconciliation queue"),
            ("work_reconciliation", "Work the reconciliation queue"),
            ("manage_tenant", "Manage the tenant"),
            ("read_audit", "Read the audit record"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(slug__regex=r"^[a-z][a-z0-9-]{1,39}$"), name="tenant_slug_ascii"),
            models.CheckConstraint(condition=Q(approval_threshold_minor__gte=0), name="tenant_threshold_not_negative"),
        ]

    def __str__(self) -> str:
        return self.name


class TenantUserGrant(UserObjectPermissionBase):
    """A right of one person in one tenant."""

    content_object = models.ForeignKey(Tenant, on_delete=models.CASCADE)

    class Meta(UserObjectPermissionBase.Meta):
        abstract = False


class TenantGroupGrant(GroupObjectPermissionBase):
    """A right of one role in one tenant."""

    content_object = models.ForeignKey(Tenant, on_delete=models.CASCADE)

    class Meta(GroupObjectPermissionBase.Meta):
        abstract = False
