"""What people hold in a tenant at this moment, and which reviews that lets them decide. Read fresh, never cached."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from approvals.rules import Review, Who, limit
from runtime_app import rows

DECIDE = "decide_approvals"

# Every active person of the tenants who holds the right to decide there, with roles and teams.
_HOLDERS = """
SELECT t.id, u.id, u.username, u.first_name, u.last_name,
    coalesce((SELECT array_agg(substr(g.name, length(t.slug) + 2)) FROM runtime_app_user_groups ug
        JOIN auth_group g ON g.id = ug.group_id WHERE ug.user_id = u.id AND g.name LIKE t.slug || ':%%'), '{}'),
    coalesce((SELECT array_agg(m.ref) FROM approvals_teammember tm JOIN approvals_team m ON m.id = tm.team_id
        WHERE tm.person_id = u.id AND m.tenant_id = t.id), '{}')
FROM runtime_app_tenant t JOIN LATERAL (
    SELECT DISTINCT u.* FROM auth_permission p
    JOIN runtime_app_user u ON u.is_active AND (
        EXISTS (SELECT 1 FROM runtime_app_tenantusergrant g WHERE g.permission_id = p.id AND g.user_id = u.id
            AND g.content_object_id = t.id)
        OR EXISTS (SELECT 1 FROM runtime_app_tenantgroupgrant g JOIN runtime_app_user_groups ug
            ON ug.group_id = g.group_id WHERE g.permission_id = p.id AND ug.user_id = u.id
            AND g.content_object_id = t.id))
    WHERE p.codename = 'decide_approvals' AND {people}
) u ON TRUE WHERE t.id = ANY(%s)
"""
_ALL = _HOLDERS.replace("{people}", "TRUE")
_SOME = _HOLDERS.replace("{people}", "u.id = ANY(%s)")


@dataclass(frozen=True, slots=True)
class Standing:
    """One person who may decide in a tenant, with what the person holds there."""

    person_id: int
    username: str
    name: str
    roles: frozenset[str]
    teams: frozenset[str]

    def among(self, who: Who, amount_minor: int, currency: str) -> bool:
        """Whether the person is meant, by name, by team or by a role that may agree to this amount."""
        if who.anyone or self.username in who.people or not self.teams.isdisjoint(who.teams):
            return True
        return any(
            role.name in self.roles and ((most := limit(role.up_to, currency)) is None or amount_minor <= most)
            for role in who.roles
        )

    def may(self, review: Review, amount_minor: int, currency: str, also: Who | None = None) -> bool:
        """`also`: those to whom it has been escalated."""
        return self.among(review.who, amount_minor, currency) or (
            also is not None and self.among(also, amount_minor, currency)
        )


Standings = Mapping[tuple[UUID, int], Standing]  # by tenant and person


def of_people(tenants: Iterable[UUID], people: Iterable[int]) -> Standings:
    """Those of these people who may decide in these tenants."""
    ids = sorted(set(people))
    return _read(_SOME, [ids, list(set(tenants))]) if ids else {}


def of_tenant(tenant_id: UUID) -> list[Standing]:
    """Everybody who may decide in the tenant, by name."""
    found = _read(_ALL, [[tenant_id]])
    return sorted(found.values(), key=lambda one: (one.name, one.username))


def _read(query: str, values: list[object]) -> dict[tuple[UUID, int], Standing]:
    return {
        (tenant, person): Standing(
            person, username, f"{first} {last}".strip() or username, frozenset(roles), frozenset(teams)
        )
        for tenant, person, username, first, last, roles, teams in rows.run(query, values)
    }
