"""Where people wait in vain: rules that nobody can meet today, and open approvals that lack people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings

from approvals import simulation, standing
from approvals.given import parties
from approvals.in_force import in_force
from approvals.models import OPEN, Approval
from approvals.places import escalated_to, rules_of
from approvals.rules import WORKFLOWS, Rules
from approvals.standing import Standing
from runtime_app import rows
from runtime_app.models import Tenant

LOOKED_AT = 100  # approvals, those with the nearest deadline first


@dataclass(frozen=True, slots=True)
class Stuck:
    """An open approval, and how many people each of its reviews could not get."""

    approval: Approval
    lacking: dict[str, int]


def unsatisfiable(tenant: Tenant) -> list[str]:
    """What is wrong with the rules in force, as sentences; empty when people can meet them."""
    found: list[str] = []
    for workflow in WORKFLOWS:
        rules = in_force([tenant.pk], workflow)[tenant.pk].rules(settings.TIMING.approval_deadline)
        found += simulation.impossible(tenant, rules, at=rows.now()).values()
    return found


def lacking_people(tenant: Tenant, most: int = LOOKED_AT) -> list[Stuck]:
    """Of the open approvals with the nearest deadlines, those that the people of today could not decide."""
    waiting = Approval.objects.filter(tenant=tenant, state=OPEN).select_related("task")
    return among(tenant, list(waiting.order_by("deadline_at", "id")[:most]))


def among(tenant: Tenant, asked: Sequence[Approval]) -> list[Stuck]:
    """Those of these open approvals of the tenant (with their tasks) that the people of today could not decide."""
    everybody = standing.of_tenant(tenant.pk) if asked else []
    judged = ((one, _lacking(one, rules_of(one), everybody)) for one in asked)
    return [Stuck(one, lacking) for one, lacking in judged if lacking]


def _lacking(asked: Approval, rules: Rules, everybody: Sequence[Standing]) -> dict[str, int]:
    return simulation.lacking(
        rules, asked.facts, everybody, excluded=parties(asked.task.requester_id, asked.task.state),
        also=escalated_to(asked, rules),
    )
