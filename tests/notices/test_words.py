"""What came of a notice about a proved outcome, in words: C08 wants the reason why it was ignored."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from runtime_app.notices.words import of_a_proved_outcome
from runtime_app.states import UNRESOLVED, OperationState

PROVED = datetime(2030, 3, 1, 10, 27, 30, tzinfo=UTC)
BEFORE, SAME_SECOND, AFTER = PROVED - timedelta(minutes=2), PROVED - timedelta(seconds=0.9), PROVED + timedelta(days=4)
S = OperationState


@pytest.mark.parametrize(("state", "says", "at", "word"), [
    (S.SUCCEEDED, "succeeded", AFTER, "ignored"),
    (S.SUCCEEDED, "pending", BEFORE, "ignored"),
    (S.SUCCEEDED, "failed", BEFORE, "ignored"),
    (S.SUCCEEDED, "failed", AFTER, "received"),  # C06: the money came back
    (S.SUCCEEDED, "failed", SAME_SECOND, "received"),
    (S.SUCCEEDED, "failed", None, "received"),
    (S.SUCCEEDED, "", BEFORE, "ignored"),
    (S.FAILED, "canceled", AFTER, "ignored"),
    (S.FAILED, "pending", BEFORE, "ignored"),
    (S.FAILED, "succeeded", AFTER, "received"),
    (S.NOT_EXECUTED, "succeeded", BEFORE, "received"),  # however old: the provider knows what was proved absent
    (S.NOT_EXECUTED, "pending", BEFORE, "received"),
    (S.NOT_EXECUTED, "failed", AFTER, "received"),
])
def test_it_is_ignored_when_it_is_the_same_or_older_and_else_received(
    state: OperationState, says: str, at: datetime | None, word: str
) -> None:
    told = of_a_proved_outcome(state, says, at, PROVED, looked=True)
    assert told.startswith(f"{word}: ") and len(told) <= 300 and "asked" in told


@pytest.mark.parametrize("says", ["succeeded", "failed", "", "x" * 40])
@pytest.mark.parametrize("state", sorted(set(S) - UNRESOLVED - {S.PREPARED}))
def test_every_proved_outcome_has_words_for_every_notice(state: OperationState, says: str) -> None:
    for at in (BEFORE, AFTER, None):
        for proved in (PROVED, None):
            for looked in (True, False):
                told = of_a_proved_outcome(state, says, at, proved, looked=looked)
                assert told.startswith(("ignored: ", "received: ")) and len(told) <= 300
                assert looked or told.startswith("ignored: "), "nobody looks, so it cannot claim that"
