"""Careless changes to what counts as an agreement, and for each a scene that ends otherwise under it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, TypeAlias

import pytest

from approvals import absences, counting, decisions, given, places, standing, votes
from runtime_app import rows
from runtime_app.models import User
from runtime_app.workflows.refund import agreement, facts, judge, material
from tests.approvals.machine import APPROVER, Approvals, policy, review

Patch = pytest.MonkeyPatch
CARL = {"people": ["carl"]}


def only_requester_excluded(patch: Patch) -> None:
    """Whoever changed the request may decide it."""
    patch.setattr(places, "excluded", lambda person, asked: "" if asked.task.requester_id == person.pk else None)


def rights_not_read_again(patch: Patch) -> None:
    """An agreement that was given counts for ever."""
    patch.setattr(given, "valid", lambda rules, said, *_, **__: tuple(said))


def one_is_enough(patch: Patch) -> None:
    """The first agreement completes a review, whatever its quorum."""
    def lacking(rules: Any, said: Any) -> dict[str, int]:
        return {r.name: 1 for r in rules.reviews if r.name not in {vote.review for vote in said}}

    for module in (counting, decisions, votes, facts, agreement):
        patch.setattr(module, "missing", lacking)


def one_review_is_enough(patch: Patch) -> None:
    """Of several reviews the first one that is met lets it go."""
    real = counting.missing

    def lacking(rules: Any, said: Any) -> dict[str, int]:
        found = real(rules, said)
        return found if len(found) == len(rules.reviews) else {}

    for module in (decisions, votes, facts, agreement):
        patch.setattr(module, "missing", lacking)


def everybody_stands_in(patch: Patch) -> None:
    """Whoever may decide at all stands in for everybody, away or not."""
    def stood_for(person: User, tenant_id: Any) -> list[Any]:
        others = User.objects.filter(username__in=["ada", "abel", "carl", "una"]).exclude(pk=person.pk)
        return [SimpleNamespace(person_id=other.pk, person=other) for other in others]

    patch.setattr(absences, "stood_for", stood_for)


def a_place_counts_twice(patch: Patch) -> None:
    """A person and who stood in for the person are two voices."""
    real = votes.locked

    def locked(ids: Any) -> Any:
        return {
            id: replace(one, places=frozenset(vote.person_id for vote in one.agreed))
            for id, one in real(ids).items()
        }

    patch.setattr(votes, "locked", locked)


def destination_immaterial(patch: Patch) -> None:
    """To whom it goes is not bound."""
    patch.setattr(material, "MATERIAL", tuple(n for n in material.MATERIAL if n != "destination"))


def policy_immaterial(patch: Patch) -> None:
    """Under which version people agreed is not bound."""
    patch.setattr(material, "MATERIAL", tuple(n for n in material.MATERIAL if n != "policy_version"))


def nothing_compared(patch: Patch) -> None:
    """What was bound is not read again before sending."""
    patch.setattr(judge, "fingerprint", lambda found: "0" * 64)


def taken_back_counts(patch: Patch) -> None:
    """An agreement that was taken back stays in the count."""
    patch.setattr(votes.WithdrawVote, "write", classmethod(lambda cls, wanted: None))


def late_counts(patch: Patch) -> None:
    """The time to decide is for the sweep to watch."""
    real = votes.CastVote._judge
    early = datetime(2000, 1, 1, tzinfo=UTC)
    patch.setattr(votes.CastVote, "_judge", lambda self, row, asked: real(self, replace(row, now=early), asked))


def limits_overlooked(patch: Patch) -> None:
    """Everybody of a role may agree to any amount."""
    patch.setattr(standing, "limit", lambda limits, currency: None)


def _begin(run: Approvals, *reviews: Any, **more: Any) -> None:
    run.begin(said=policy(*reviews, **more))


def the_editor_agrees(run: Approvals) -> None:
    _begin(run, review("r0", APPROVER, 1, 5000))
    run.role_changes(who="una", role="requester", has=True)
    run.amend(number=0, by="una", amount=6000)
    run.work()
    run.approve(number=0, who=["una"])
    run.work()


def the_requester_agrees(run: Approvals) -> None:
    _begin(run, review("r0", APPROVER, 1, 5000))
    run.role_changes(who="rita", role="approver", has=True)
    run.approve(number=0, who=["rita"])
    run.work()


def the_right_is_lost(run: Approvals) -> None:
    _begin(run, review("r0", APPROVER, 1, 5000))
    run.approve(number=0, who=["ada"])
    run.role_changes(who="ada", role="approver", has=False)
    run.work()


def the_team_is_left(run: Approvals) -> None:
    _begin(run, review("r0", {"teams": ["risk"]}, 1, 5000))
    run.approve(number=0, who=["ada"])
    run.team_changes(who="ada", ref="risk")
    run.work()


def one_of_two(run: Approvals) -> None:
    _begin(run, review("r0", APPROVER, 2, 5000))
    run.approve(number=0, who=["ada"])
    run.work()


def one_review_of_two(run: Approvals) -> None:
    _begin(run, review("r0", APPROVER, 1, 5000), review("r1", {"teams": ["money"]}, 1, 5000))
    run.approve(number=0, who=["ada"])
    run.work()


def nobody_is_away(run: Approvals) -> None:
    _begin(run, review("r0", CARL, 1, 5000))
    run.approve(number=0, who=["abel"])
    run.work()


def the_substitute_and_then_the_person(run: Approvals) -> None:
    _begin(run, review("r0", CARL, 1, 5000), review("r1", {"people": ["carl", "ada"]}, 1, 5000))
    run.goes_away(who="carl", other="abel", hours=10)
    run.approve(number=0, who=["abel", "carl"])
    run.work()


def another_destination(run: Approvals) -> None:
    _begin(run, review("r0", APPROVER, 1, 5000))
    run.approve(number=0, who=["ada"])
    run.destination_changes(number=0, where="card_2")
    run.work()


def stricter_rules(run: Approvals) -> None:
    _begin(run, review("r0", APPROVER, 1, 5000))
    run.approve(number=0, who=["ada"])
    run.rules_change(said=policy(review("r0", APPROVER, 2, 5000)))
    run.work()


def taken_back(run: Approvals) -> None:
    _begin(run, review("r0", APPROVER, 2, 5000))
    run.approve(number=0, who=["ada"])
    run.withdraw(number=0)
    run.approve(number=0, who=["abel"])
    run.work()


def too_late(run: Approvals) -> None:
    _begin(run, review("r0", APPROVER, 1, 5000))
    run.world.clock(hours=48)
    assert rows.now() - timedelta(hours=48) > datetime(2000, 1, 1, tzinfo=UTC)
    run.approve(number=0, who=["ada"])
    run.work()


def above_the_limit(run: Approvals) -> None:
    _begin(run, review("r0", {"roles": [{"name": "approver", "up_to": {"USD": 8000}}], "people": ["ada"]}, 1, 5000))
    run.approve(number=0, who=["carl"])
    run.work()


Mutant: TypeAlias = Callable[[Patch], None]
Scene: TypeAlias = Callable[[Approvals], None]
SHOWN: dict[Mutant, Scene] = {
    only_requester_excluded: the_editor_agrees, rights_not_read_again: the_right_is_lost,
    one_is_enough: one_of_two, one_review_is_enough: one_review_of_two,
    everybody_stands_in: nobody_is_away, a_place_counts_twice: the_substitute_and_then_the_person,
    destination_immaterial: another_destination, nothing_compared: another_destination,
    policy_immaterial: stricter_rules, taken_back_counts: taken_back, late_counts: too_late,
    limits_overlooked: above_the_limit,
}
# That nobody decides an own request stands in the database too, so that no careless change can take it away.
SCENES = [*dict.fromkeys(SHOWN.values()), the_team_is_left, the_requester_agrees]
