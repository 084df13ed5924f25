from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from runtime_app.models.columns import key, now_column
from runtime_app.models.tenant import Tenant


class Team(models.Model):
    """People of a tenant whom a policy names together, for example finance."""

    id = key()
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    ref = models.CharField(max_length=40)
    created_at = now_column()

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["tenant", "ref"], name="one_team_per_ref"),
            models.CheckConstraint(condition=Q(ref__regex=r"^[a-z][a-z0-9_-]{0,39}$"), name="team_ref_ascii"),
        ]

    def __str__(self) -> str:
        return self.ref


class TeamMember(models.Model):
    """One person of a team."""

    id = key()
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="members")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    added_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    added_at = now_column()

    class Meta:
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["team", "person"], name="one_place_per_team")]

    def __str__(self) -> str:
        return f"{self.person_id} in {self.team_id}"
