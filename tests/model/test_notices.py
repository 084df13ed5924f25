"""R2: a refund, and what the provider tells of it by itself: in any order, twice, lost, forged, late, before our own
commit. The books end as the provider's last word, if it was told; and every wrong way of hearing is found out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from runtime_app.notices.courses import Course, course
from runtime_app.reconciliation import table
from runtime_app.states import UNRESOLVED, OperationState
from tests.model import telling
from tests.model.search import Searched, explore
from tests.model.telling import PENDING, SUCCEEDED, Hearing, Story, Telling, canonical, settled, wrong
from tests.model.telling_mutants import MUTANTS, Mutant

DRILL = bool(os.environ.get("COUNTERSIGN_DRILL"))
FAULTS = {SUCCEEDED: 2, PENDING: 2 if DRILL else 1, "refuses": 2}


@pytest.fixture(scope="module")
def told(print_line: Callable[[str], None]) -> Iterator[dict[str, int]]:
    """What was looked at, printed as one line at the end."""
    sums = dict.fromkeys(("states", "edges", "mutants", "caught"), 0)
    yield sums
    print_line(f"R2 states={sums['states']} edges={sums['edges']} mutants caught={sums['caught']}/{sums['mutants']}")


def _search(telling: Telling, begins: Story, told: dict[str, int], seen: set[tuple[str, str]]) -> Searched[Story]:
    def good(story: Story) -> bool:
        seen.add((story.status, story.operation))
        return settled(story)

    found = explore(begins, telling.edges, wrong, alike=canonical, good=good)
    told["states"] += found.states
    told["edges"] += found.edges
    return found


@pytest.mark.parametrize("named", [True, False], ids=["by our reference", "by the provider's reference"])
@pytest.mark.parametrize("first", FAULTS)
def test_the_books_end_as_the_providers_last_word(first: str, named: bool, told: dict[str, int]) -> None:
    """C06, C08, rows 22 to 24, I7, I8: no order of notices moves a state by itself, moves one back or is overheard."""
    seen: set[tuple[str, str]] = set()
    found = _search(Telling(Hearing(), first, named), Story(faults=FAULTS[first]), told, seen)
    assert found.why is None, "\n".join([str(found.why), *found.story])
    assert found.stuck is None, found.stuck
    if first == SUCCEEDED:  # a model that cannot come there is safe too
        assert {("completed", "returned"), ("cancelled", "succeeded"), ("failed", "succeeded")} <= seen
        assert {("cancelled", "returned"), ("failed", "not_executed")} <= seen


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_mutant_is_found_out(mutant: Mutant, told: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "ROWS", mutant.rows)
    told["mutants"] += 1
    found = _search(mutant.telling, mutant.begins, told, set())
    assert found.why is not None and mutant.breaks in found.why, found
    told["caught"] += 1


def test_every_mutant_has_a_name_of_its_own_and_is_safe_without_its_fault(told: dict[str, int]) -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    for mutant in MUTANTS:
        found = _search(Telling(Hearing(), mutant.first, mutant.named), mutant.begins, told, set())
        assert found.why is None, (mutant.name, found.why)


def test_every_state_of_an_operation_has_a_course() -> None:
    """The product's own table of courses, as the model uses it."""
    for says in ("succeeded", "pending", "failed", "canceled", "", "nonsense"):
        assert {state for state in OperationState if course(state, says) == Course.WAKE} == UNRESOLVED
        assert {state for state in OperationState if course(state, says) == Course.WAIT} == {OperationState.PREPARED}
        assert course(None, says) == Course.NOBODY
        assert course(OperationState.NOT_EXECUTED, says) == Course.HINT
        assert course(OperationState.SUCCEEDED, says, same_refund=False) == Course.HINT
    assert course(OperationState.SUCCEEDED, "succeeded") == Course.NOTED
    assert course(OperationState.SUCCEEDED, "failed") == course(OperationState.FAILED, "succeeded") == Course.HINT


@pytest.fixture(autouse=True)
def _decided_anew() -> Iterator[None]:
    """No verdict of another table is remembered."""
    telling.decide.cache_clear()
    yield
    telling.decide.cache_clear()
