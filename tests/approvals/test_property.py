"""Whatever happens in whatever order: no money without enough valid, distinct, unexcluded, current agreements."""

from __future__ import annotations

import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.approvals.machine import Approvals
from tests.approvals.mutants import SCENES, SHOWN, Mutant, Scene
from tests.approvals.oracle import Unlawful
from tests.world import World, empty_tables

DRILL = os.environ.get("COUNTERSIGN_DRILL") == "1"


def in_this(world: World) -> type[Approvals]:
    class InThisWorld(Approvals):
        pass

    InThisWorld.world, InThisWorld.seen = world, Counter()
    return InThisWorld


def run(world: World, *, runs: int, shrink: bool = True) -> Counter[str]:
    """Let everything happen in so many runs; an AssertionError of the oracle is the product's fault."""
    machine = in_this(world)
    phases = [Phase.generate, Phase.shrink] if shrink else [Phase.generate]
    run_state_machine_as_test(machine, settings=settings(
        max_examples=runs, stateful_step_count=40, deadline=None, derandomize=not DRILL, database=None,
        suppress_health_check=list(HealthCheck), phases=phases, report_multiple_bugs=False,
    ))
    return machine.seen


@pytest.mark.timeout(3600)
def test_no_money_moves_without_the_people_whom_the_policy_asks(world: World) -> None:
    """Done when, M20, M21, M38, C14, C20: policies, people, decisions, facts, rights and time change in any order."""
    seen = run(world, runs=400 if DRILL else 10)
    for what in ("approve", "vote refused", "paid by agreement", *(("withdrawn", "in the place of another") * DRILL)):
        assert seen[what], f"{what} never happened, so that this tested nothing: {seen}"


def _play(world: World, scene: Scene) -> Counter[str]:
    machine = in_this(world)()
    try:
        scene(machine)
    finally:
        machine.teardown()
    return machine.seen


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_every_scene_ends_without_money(world: World, scene: Scene) -> None:
    """What the careless changes are held against: as the product is, the oracle has nothing to say."""
    assert not _play(world, scene)["paid by agreement"]


@pytest.mark.parametrize("mutant", SHOWN, ids=lambda mutant: mutant.__name__)
def test_a_careless_change_is_seen_by_the_oracle(
    world: World, mutant: Mutant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Done when: each wrong variant of what counts as an agreement lets money go that should not, and it is noticed."""
    mutant(monkeypatch)
    with pytest.raises(Unlawful):
        _play(world, SHOWN[mutant])
    monkeypatch.undo()
    empty_tables()  # what it has done is not to be held against the invariants
