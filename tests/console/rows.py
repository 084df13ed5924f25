"""Rows that the reconciliation pages show, made as the engine makes them."""

from __future__ import annotations

from datetime import date
from typing import Any
from uuid import UUID

from django.db import transaction

from runtime_app import rows
from runtime_app.ledger.cases import OpenCase
from runtime_app.models import Account, Case, Operation, StatementDay
from tests.world import World


def a_case(world: World, class_name: str, operation: Operation | None = None, **given: Any) -> Case:
    """An open case of this class, of the operation when there is one."""
    of: dict[str, Any] = {"account": "stripe", "payment_ref": "", "matter": f"{class_name}-{len(given)}"}
    if operation is not None:
        of |= {
            "payment_ref": operation.payment_ref, "order_ref": operation.order_ref, "operation_id": operation.id,
            "amount_minor": operation.amount_minor, "currency": operation.currency, "matter": "",
        }
    part = OpenCase(class_name, **(of | given))
    task_id: UUID | None = operation.task_id if operation else None
    with transaction.atomic():
        now = rows.run("SELECT runtime_now()")[0][0]
        stored = part.store(tenant_id=world.amber.id, task_id=task_id, now=now)
    assert stored is not None, "one of this matter is open already"
    return Case.objects.select_related("operation").get(pk=stored)


def a_day(world: World, day: date = date(2026, 10, 5), **given: Any) -> StatementDay:
    """A statement day of Amber's account at the payment provider."""
    account = Account.objects.get(tenant=world.amber, ref="stripe")
    return StatementDay.objects.create(tenant=world.amber, account=account, day=day, **given)
