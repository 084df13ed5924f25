from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.db import models

from runtime_app.models.columns import key, now_column
from runtime_app.models.tenant import Tenant


class User(AbstractUser):
    """A person. Rights come from memberships, never from `is_staff`."""

    time_zone = models.CharField(max_length=60, blank=True, default="")

    @property
    def shown_name(self) -> str:
        return self.get_full_name() or self.username


class Membership(models.Model):
    """A person belongs to a tenant; which roles the person has there is said by groups."""

    id = key()
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    created_at = now_column()

    class Meta:
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["tenant", "person"], name="one_membership_per_tenant")]

    def __str__(self) -> str:
        return f"{self.person} in {self.tenant}"


class ServiceAccount(models.Model):
    """An application or an agent of one tenant. Its key is shown once and stored as a digest."""

    id = key()
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    name = models.CharField(max_length=80)
    key_prefix = models.CharField(max_length=16)
    key_sha256 = models.CharField(max_length=64, unique=True)
    created_at = now_column()
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["tenant", "name"], name="one_service_account_name")]

    def __str__(self) -> str:
        return self.name
