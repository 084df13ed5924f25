"""Columns that every model makes alike."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import models
from django.db.models import Func
from django.db.models.expressions import Combinable

from runtime_app.ids import new_id


class RuntimeNow(Func):
    """The database's clock, with the offset that exists only in trial and test."""

    function = "runtime_now"
    template = "%(function)s()"
    output_field = models.DateTimeField()


def key() -> models.UUIDField[UUID | str | Combinable, UUID]:
    return models.UUIDField(primary_key=True, default=new_id, editable=False)


def now_column(**options: Any) -> models.DateTimeField[Any, Any]:
    return models.DateTimeField(db_default=RuntimeNow(), editable=False, **options)


def minor_column(**options: Any) -> models.BigIntegerField[Any, Any]:
    return models.BigIntegerField(**options)
