from __future__ import annotations

from django.db import models

from runtime_app.models.columns import key, now_column
from runtime_app.models.tenant import Tenant


class Session(models.Model):
    """A conversation. It may hold many tasks, and none of its words is a fact."""

    id = key()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT)
    ref = models.CharField(max_length=200)
    created_at = now_column()

    class Meta:
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["tenant", "ref"], name="one_session_per_ref")]

    def __str__(self) -> str:
        return self.ref


class Message(models.Model):
    """What somebody said or a model observed; a claim, kept apart from facts."""

    id = key()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT)
    session = models.ForeignKey(Session, on_delete=models.PROTECT, null=True, blank=True, related_name="messages")
    task = models.ForeignKey(
        "runtime_app.Task", on_delete=models.PROTECT, null=True, blank=True, related_name="messages"
    )
    author = models.CharField(max_length=120)
    body = models.TextField()
    created_at = now_column()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.author}: {self.body[:40]}"
