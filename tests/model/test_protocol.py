"""R1: every order in which one refund's workers, provider, people and faults may act, within bounds, over the product's
own state table and decision table; and every wrong protocol we know of is found out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from runtime_app.reconciliation import table
from runtime_app.reconciliation.table import Row
from tests.model import protocol
from tests.model.mutants import HONEST, LIES, MUTANTS, READY, REMEMBERS, UNCANCELLED, VAGUE, Mutant
from tests.model.protocol import Protocol
from tests.model.search import Searched, search
from tests.model.world import LIMITS, Provider, World

DRILL = bool(os.environ.get("COUNTERSIGN_DRILL"))
FAULTS = {"settles": 2, "pends": 2 if DRILL else 1, "refuses": 2 if DRILL else 1}
AS_BUILT = [
    (provider, answers) for provider in (REMEMBERS, LIES, VAGUE) for answers in FAULTS
    if DRILL or (provider, answers) != (VAGUE, "pends")  # the largest, and nearly the same as the one before
]


@pytest.fixture(scope="module")
def told(print_line: Callable[[str], None]) -> Iterator[dict[str, int]]:
    """What was looked at, printed as one line at the end."""
    sums = dict.fromkeys(("states", "edges", "mutants", "caught", "limits"), 0)
    yield sums
    print_line(
        f"R1 states={sums['states']} edges={sums['edges']} mutants caught={sums['caught']}/{sums['mutants']}"
        f" limits shown={sums['limits']}/{len(LIMITS)}"
    )


def _search(
    protocol: Protocol, provider: Provider, first: World, told: dict[str, int], **options: object
) -> Searched[World]:
    found = search(protocol, provider, first, **options)  # type: ignore[arg-type]
    told["states"] += found.states
    told["edges"] += found.edges
    return found


@pytest.mark.parametrize(("provider", "answers"), AS_BUILT, ids=lambda value: getattr(value, "name", value))
def test_the_protocol_as_built_is_safe_and_always_comes_to_an_end_or_a_person(
    provider: Provider, answers: str, told: dict[str, int]
) -> None:
    """P1, P3, P4, P5: one effect at most and none on a cancelled refund, whether keys are remembered or not."""
    found = _search(Protocol(), replace(provider, answers=answers), World(faults=FAULTS[answers]), told, live=True)
    assert found.why is None, "\n".join([str(found.why), *found.story])
    assert found.stuck is None, found.stuck
    assert found.states > 3000  # a model that cannot move is safe too


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_mutant_is_found_out(mutant: Mutant, told: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """R6 in small: a departure from the protocol, or a changed row of the product's own table, breaks a promise."""
    _decide_by(mutant.rows, monkeypatch)
    told["mutants"] += 1
    found = _search(mutant.protocol, mutant.provider, mutant.first, told)
    assert found.why is not None and mutant.breaks in found.why, found
    told["caught"] += 1


@pytest.mark.parametrize(("limit", "provider", "first"), [
    ("slow_after_a_stall", REMEMBERS, READY), ("cut_off_in_a_stall", REMEMBERS, READY),
    ("liar_that_is_slow", LIES, UNCANCELLED), ("stall_of_a_window", REMEMBERS, UNCANCELLED._replace(faults=3)),
])
def test_what_is_not_promised_is_known(limit: str, provider: Provider, first: World, told: dict[str, int]) -> None:
    """P9: two rare things at once can still move money wrongly; the late watch and the ledger show it. The model says
    exactly which, so that nobody reads more into the promise than it holds."""
    found = _search(Protocol(), provider, first, told, lifted=frozenset({limit}))
    assert found.why in {"a refund of a cancelled task", "two refunds of one operation"}
    told["limits"] += 1


def test_every_mutant_has_a_name_of_its_own_and_every_provider_has_one() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 10
    assert {mutant.provider.name for mutant in MUTANTS} == {p.name for p in (REMEMBERS, LIES, VAGUE, HONEST)}


def _decide_by(rows: tuple[Row, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "ROWS", rows)
    protocol.decide.cache_clear()


@pytest.fixture(autouse=True)
def _decided_anew() -> Iterator[None]:
    """No verdict of another table is remembered."""
    protocol.decide.cache_clear()
    yield
    protocol.decide.cache_clear()
