from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from runtime_app.models.columns import key, now_column
from runtime_app.models.tenant import Tenant


class Absence(models.Model):
    """From `starts_at` to `ends_at` the substitute may decide where the person may. Ended early at `ended_at`."""

    id = key()
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="absences")
    substitute = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    note = models.CharField(max_length=200, blank=True, default="")
    entered_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = now_column()
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        default_permissions = ()
        constraints = [
            models.CheckConstraint(condition=Q(starts_at__lt=F("ends_at")), name="absence_has_a_length"),
            models.CheckConstraint(condition=~Q(person=F("substitute")), name="absence_has_another_substitute"),
        ]
        indexes = [
            models.Index(fields=["tenant", "substitute", "ends_at"], name="absence_substitute",
                         condition=Q(ended_at__isnull=True)),
            models.Index(fields=["tenant", "person", "ends_at"], name="absence_person",
                         condition=Q(ended_at__isnull=True)),
        ]

    def __str__(self) -> str:
        return f"{self.substitute_id} for {self.person_id}"
