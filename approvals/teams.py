"""A tenant's teams: people whom a policy names together. Admins change them; no vote that was given changes by it.

Who leaves a team is no longer asked, and what the person has said counts only as far as it still would when the votes
are counted again, before anything is sent.
"""

from __future__ import annotations

import re
from uuid import UUID

from approvals.models import Policy, Team, TeamMember
from runtime_app import access
from runtime_app.errors import Conflict, FieldErrors, Forbidden, NotFound
from runtime_app.models import Membership, Tenant, User
from runtime_app.texts import check_text

MANAGE = "manage_tenant"
MOST = 100
_REF = re.compile(r"[a-z][a-z0-9_-]{0,39}", re.ASCII)


def of_tenant(person: User, tenant: Tenant) -> list[Team]:
    """The tenant's teams by name, each with its members. Raises NotFound or Forbidden."""
    may_change(person, tenant)
    return list(Team.objects.filter(tenant=tenant).prefetch_related("members__person").order_by("ref"))


def create(person: User, tenant: Tenant, ref: str) -> Team:
    """A team without members. Raises NotFound, Forbidden, or FieldErrors beside `ref`."""
    may_change(person, tenant)
    if not _REF.fullmatch(ref):
        raise FieldErrors({"ref": "Use small letters, digits, - and _, beginning with a letter, at most 40."})
    if Team.objects.filter(tenant=tenant).count() >= MOST:
        raise FieldErrors({"ref": f"There are {MOST} teams already."})
    made, fresh = Team.objects.get_or_create(tenant=tenant, ref=ref)
    if not fresh:
        raise FieldErrors({"ref": "There is a team of this name already."})
    return made


def add(person: User, team_id: UUID, username: str) -> Team:
    """One more person. Raises NotFound, Forbidden, or FieldErrors beside `username`."""
    team, username = _team(person, team_id), check_text(username, "username", most=150)
    member = Membership.objects.filter(tenant=team.tenant_id, person__username=username, person__is_active=True)
    found = member.select_related("person").first()
    if found is None:
        raise FieldErrors({"username": "Name an active person of this tenant."})
    _row, fresh = TeamMember.objects.get_or_create(team=team, person=found.person, defaults={"added_by": person})
    if not fresh:
        raise FieldErrors({"username": f"{found.person.shown_name} is in this team already."})
    return team


def remove(person: User, team_id: UUID, username: str) -> Team:
    """One person less. Raises NotFound, Forbidden, FieldErrors, or Conflict when the person is not in it."""
    team, username = _team(person, team_id), check_text(username, "username", most=150)
    gone, _ = TeamMember.objects.filter(team=team, person__username=username).delete()
    if not gone:
        raise Conflict("This person is not in the team any more; nothing was changed.")
    return team


def named_by(tenant: Tenant) -> dict[str, list[int]]:
    """Which versions of the tenant's policies that hold or wait name a team, by the team."""
    found: dict[str, list[int]] = {}
    for policy in Policy.objects.filter(tenant=tenant, state__in=["in_force", "proposed"]).order_by("number"):
        for ref in _teams_in(policy):
            found.setdefault(ref, []).append(policy.number)
    return found


def _teams_in(policy: Policy) -> set[str]:
    asked = [review["who"] for review in policy.rules["reviews"]] + [policy.rules["escalate_to"]]
    return {ref for who in asked for ref in who["teams"]}


def may_change(person: User, tenant: Tenant) -> None:
    access.forget(person)
    if not access.may(person, tenant.id, "see_tasks"):
        raise NotFound
    if not access.may(person, tenant.id, MANAGE):
        raise Forbidden


def _team(person: User, team_id: UUID) -> Team:
    access.forget(person)
    return access.one(person, Team.objects.select_related("tenant"), team_id, see="see_tasks", do=MANAGE)
