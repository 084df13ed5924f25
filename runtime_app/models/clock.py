from __future__ import annotations

import datetime

from django.db import models


class RuntimeClock(models.Model):
    """How far the database's clock is moved; it has its one row only in trial and test."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    advanced = models.DurationField(default=datetime.timedelta())

    class Meta:
        default_permissions = ()
        db_table = "runtime_clock"

    def __str__(self) -> str:
        return f"+{self.advanced}"


class Installation(models.Model):
    """The one row about this copy of the system; the epoch grows with every restore."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    restore_epoch = models.PositiveIntegerField(default=1)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"epoch {self.restore_epoch}"
