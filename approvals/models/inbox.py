from __future__ import annotations

from django.conf import settings
from django.db import models

from approvals.models.approval import Approval
from runtime_app.models.columns import key, now_column
from runtime_app.models.tenant import Tenant


class Snooze(models.Model):
    """One person has put an approval away until then; for everybody else it is where it was."""

    id = key()
    approval = models.ForeignKey(Approval, on_delete=models.CASCADE, related_name="snoozes")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    until = models.DateTimeField()

    class Meta:
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["approval", "person"], name="one_snooze_per_person")]

    def __str__(self) -> str:
        return f"{self.approval_id} until {self.until}"


class SavedFilter(models.Model):
    """A person's own name for a query of the inbox. It keeps the words of the query, never what they matched."""

    id = key()
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=500)
    created_at = now_column()

    class Meta:
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["tenant", "person", "name"], name="one_filter_per_name")]

    def __str__(self) -> str:
        return self.name
