"""Changing a tenant's policy: one admin proposes a version, another one agrees to it, and from then on it holds.

What was asked under the version before is asked anew; `rounds.py` does that.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Max

from approvals import simulation
from approvals.in_force import in_force
from approvals.models import Policy, Team
from approvals.rules import WORKFLOWS, Rules, Who
from approvals.rules_json import dump, load
from runtime_app import access, rows
from runtime_app.bell import ring_after_commit
from runtime_app.errors import Conflict, FieldErrors, Forbidden, NotFound
from runtime_app.models import Membership, Tenant, User
from runtime_app.points import point
from runtime_app.texts import check_text

MANAGE = "manage_tenant"


def check(person: User, tenant: Tenant, said: Any) -> Rules:
    """The rules, if they could be proposed. Raises NotFound, Forbidden or FieldErrors as `propose`; stores nothing."""
    _may(person, tenant)
    rules = load(said)
    if errors := _unknown(tenant, rules) or simulation.impossible(tenant, rules, at=rows.now()):
        raise FieldErrors(errors)
    return rules


def propose(
    person: User, tenant: Tenant, workflow: str, said: Any, *, why: str, seen: int | None = None
) -> Policy:
    """A new version that waits for a second admin. Raises NotFound, Forbidden, Conflict (another one waits already, or
    what is in force is not `seen`, the version that the change was made from), or FieldErrors by the places in the
    rules; nobody can propose what nobody could satisfy.
    """
    errors: dict[str, str] = {}
    try:
        rules = check(person, tenant, said)
    except FieldErrors as refused:
        errors |= refused.errors
    try:
        why = check_text(why, "why", most=500).strip()
        errors |= {} if why else {"why": "Say why it changes; the second person reads this."}
    except FieldErrors as refused:
        errors |= refused.errors
    if workflow not in WORKFLOWS:
        errors["workflow"] = "There is no such workflow."
    if errors:
        raise FieldErrors(errors)
    try:
        with transaction.atomic(durable=True):
            Tenant.objects.select_for_update(no_key=True).get(pk=tenant.pk)
            if seen is not None and in_force([tenant.pk], workflow)[tenant.pk].number != seen:
                raise Conflict("Another version came in force meanwhile; nothing was recorded. Begin from that one.")
            last = Policy.objects.filter(tenant=tenant).aggregate(last=Max("number"))["last"] or 0
            proposed = Policy.objects.create(
                tenant=tenant, workflow=workflow, number=max(last, tenant.policy_version) + 1, rules=dump(rules),
                why=why, state="proposed", proposed_by=person,
            )
            point("policy.propose.commit")
        point("policy.propose.committed")
    except IntegrityError:
        raise Conflict("Another change of this policy waits for agreement; decide that one first.") from None
    return proposed


def _unknown(tenant: Tenant, rules: Rules) -> dict[str, str]:
    """Teams and people that are named and are not there."""
    named = [(f"reviews.{n}.who", review.who) for n, review in enumerate(rules.reviews)]
    teams = set(Team.objects.filter(tenant=tenant).values_list("ref", flat=True))
    people = set(Membership.objects.filter(tenant=tenant).values_list("person__username", flat=True))
    errors: dict[str, str] = {}
    for place, who in [*named, ("escalate_to", rules.escalate_to)]:
        errors |= _unknown_in(place, who, teams, people)
    return errors


def _unknown_in(place: str, who: Who, teams: set[str], people: set[str]) -> dict[str, str]:
    errors = {f"{place}.teams.{n}": f"There is no team {ref}." for n, ref in enumerate(who.teams) if ref not in teams}
    return errors | {
        f"{place}.people.{n}": f"There is nobody called {name} here."
        for n, name in enumerate(who.people) if name not in people
    }


def one(person: User, tenant: Tenant, policy_id: UUID) -> Policy:
    """One version. Raises NotFound or Forbidden."""
    _may_read(person, tenant)
    found = Policy.objects.select_related("proposed_by", "decided_by").filter(tenant=tenant, pk=policy_id).first()
    if found is None:
        raise NotFound
    return found


def agree(person: User, policy_id: UUID) -> Policy:
    """Put it in force. Raises NotFound, Forbidden (also for whoever proposed it), FieldErrors (it can no longer be
    satisfied) or Conflict (it is decided)."""
    policy = _proposed(person, policy_id)
    if policy.proposed_by_id == person.pk:
        raise Forbidden("You proposed this yourself; another admin must agree to it.")
    if errors := simulation.impossible(policy.tenant, load(policy.rules), at=rows.now()):
        raise FieldErrors(errors)
    with transaction.atomic(durable=True):
        # The tenant's row first, as everywhere; whoever is later finds it decided.
        Tenant.objects.select_for_update(no_key=True).get(pk=policy.tenant_id)
        before = Policy.objects.filter(tenant=policy.tenant_id, workflow=policy.workflow, state="in_force")
        if not Policy.objects.filter(pk=policy.pk, state="proposed").exists():
            raise _decided(policy)
        before.update(state="replaced")
        changed = Policy.objects.filter(pk=policy.pk, state="proposed").update(
            state="in_force", decided_by=person, decided_at=rows.now()
        )
        if not changed:  # refused since it was read, which waits for no tenant's row; what was in force stays so
            raise _decided(policy)
        point("policy.agree.commit")
    point("policy.agree.committed")
    ring_after_commit()
    policy.refresh_from_db()
    return policy


def refuse(person: User, policy_id: UUID, *, why: str) -> Policy:
    """Not this one. Whoever proposed it takes it back by the same word."""
    policy = _proposed(person, policy_id)
    why = check_text(why, "why", most=500).strip()
    own = policy.proposed_by_id == person.pk
    if not why and not own:
        raise FieldErrors({"why": "Say why it is refused."})
    changed = Policy.objects.filter(pk=policy.pk, state="proposed").update(
        state="withdrawn" if own else "refused", decided_by=person, decided_at=rows.now(), decided_why=why
    )
    if not changed:
        raise _decided(policy)
    policy.refresh_from_db()
    return policy


def of_tenant(person: User, tenant: Tenant, workflow: str) -> list[Policy]:
    """Every version there was, the newest first. Raises NotFound or Forbidden."""
    _may_read(person, tenant)
    found = Policy.objects.filter(tenant=tenant, workflow=workflow).select_related("proposed_by", "decided_by")
    return list(found.order_by("-number"))


def _may_read(person: User, tenant: Tenant) -> None:
    if not access.may(person, tenant.id, "see_tasks"):
        raise NotFound
    if not (access.may(person, tenant.id, MANAGE) or access.may(person, tenant.id, "read_audit")):
        raise Forbidden


def _proposed(person: User, policy_id: UUID) -> Policy:
    access.forget(person)
    policy = access.one(
        person, Policy.objects.select_related("tenant", "proposed_by", "decided_by"), policy_id, see="see_tasks",
        do=MANAGE,
    )
    if policy.state != "proposed":
        raise _decided(policy)
    return policy


def _decided(policy: Policy) -> Conflict:
    policy.refresh_from_db()
    by = f" by {policy.decided_by.shown_name}" if policy.decided_by else ""
    return Conflict(f"Version {policy.number} is {policy.state.replace('_', ' ')} already{by}; nothing was recorded.")


def _may(person: User, tenant: Tenant) -> None:
    access.forget(person)
    if not access.may(person, tenant.id, "see_tasks"):
        raise NotFound
    if not access.may(person, tenant.id, MANAGE):
        raise Forbidden
