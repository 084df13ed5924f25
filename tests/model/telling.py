"""R2: what a provider tells by itself, in every order: one refund, its notices, the task's worker and two that look at
proved outcomes, over the product's own decision table and its own courses of a notice.

Time is what may happen next; a worker may stop between any two steps, which is a step that is not taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from runtime_app.notices.courses import Course, course
from runtime_app.reconciliation import table
from runtime_app.reconciliation.table import Finding, Situation, Verdict
from runtime_app.states import OperationState, Status
from tests.model.world import LEGAL, OPERATION_LEGAL, Broken

S, O = Status, OperationState  # noqa: E741 - short names for the rules below
NOTHING, PENDING, SUCCEEDED, FAILED = "", "pending", "succeeded", "failed"
Edge = tuple[str, "Story"]
Told = tuple[int, str]  # the number of the change, and what the notice says
FINDINGS = {NOTHING: Finding.ABSENT, PENDING: Finding.PENDING, SUCCEEDED: Finding.SUCCEEDED, FAILED: Finding.FAILED}
FINAL = frozenset({S.COMPLETED.value, S.FAILED.value, S.CANCELLED.value})
ENDED = frozenset({O.SUCCEEDED.value, O.FAILED.value, O.NOT_EXECUTED.value})


class Eye(NamedTuple):
    """Somebody who asks the provider. `was`: what was known when the question was written down, the proved outcome or
    that the horizon had passed; of the sender, that it is the request's own answer."""

    step: str = ""  # waits (for the answer to the request) | asks | knows
    saw: str = ""
    was: str = ""


class Story(NamedTuple):
    status: str = S.EXECUTING.value
    operation: str = O.SUBMITTING.value
    held: bool = True
    refunded: int = 0  # what the balance counts as refunded
    case: str = ""
    wished: bool = False
    ref: bool = False  # the provider's reference is known here
    due: bool = False
    deaf: bool = False  # the last look told nothing: the schedule is the net
    hand: Eye = Eye("waits")
    eyes: tuple[Eye, Eye] = (Eye(), Eye())
    hinted: bool = False  # the next look at the proved outcome is due
    wire: bool = True
    truth: str = NOTHING  # of the refund at the provider
    changes: int = 0
    horizon: bool = False  # absence counts, and nothing that was sent may still be acted on
    mail: tuple[Told, ...] = ()
    inbox: tuple[Told, ...] = ()
    stored: int = 0  # the events known here, as bits
    told: int = 0  # the changes whose notice was answered with success, as bits
    faults: int = 0
    forgeries: int = 0


@dataclass(frozen=True, slots=True)
class Hearing:
    """As built by default; each field that differs makes a mutant."""

    notice_is: str = "hint"  # state | end
    signature: bool = True
    answered: str = "stored"  # before
    known_by: str = "event"  # operation
    busy: str = "kept"  # used_up
    unnamed: str = "kept"  # dropped
    after_the_end: str = "hint"  # ignored | wake
    follow_is_guarded: bool = True
    looks_once_more: bool = True
    told_nothing: str = "again"  # used_up
    look_that_dies: str = "again"  # used_up
    looks_as_if_open: bool = False
    task_follows: bool = False
    late_is_booked: bool = True
    return_is_booked: bool = True


@cache
def decide(situation: Situation) -> Verdict:
    return table.decide(situation).verdict


@dataclass(frozen=True, slots=True)
class Telling:
    """`first` is what the provider does with the request; `named` whether its notices carry our own reference."""

    hearing: Hearing
    first: str = PENDING  # succeeded | refuses
    named: bool = True
    changes_most: int = 3

    def edges(self, story: Story) -> Iterator[Edge]:
        """Everything that may happen now."""
        yield from self._provider(story)
        yield from self._post(story)
        yield from self._heard(story)
        yield from self._worker(story)
        for number in (0, 1):
            yield from self._watch(story, number)
        yield from self._time(story)
        if story.forgeries:
            yield from self._forged(story._replace(forgeries=story.forgeries - 1))

    # --- the provider, and its notices on their way ---

    def _provider(self, story: Story) -> Iterator[Edge]:
        if story.wire:
            taken = story._replace(wire=False)
            done = taken if self.first == "refuses" else self._changed(taken, self.first)
            answer = "refused" if self.first == "refuses" else self.first
            yield "the provider acts", self._answered(done, answer)
            if story.faults and story.hand.step == "waits":
                spent = done._replace(faults=story.faults - 1)
                yield "the answer is lost", self._answered(spent, "unknown")
                yield "the request is lost", self._answered(
                    taken._replace(faults=story.faults - 1), "unknown")
        if story.changes < self.changes_most:
            if story.truth == PENDING:
                yield "it settles", self._changed(story, SUCCEEDED)
            if story.truth in {PENDING, SUCCEEDED}:
                yield "it fails", self._changed(story, FAILED)

    def _changed(self, story: Story, truth: str) -> Story:
        number = story.changes + 1
        return story._replace(truth=truth, changes=number, mail=(*story.mail, (number, truth)))

    def _answered(self, story: Story, answer: str) -> Story:
        return story._replace(hand=Eye("knows", answer, "answer")) if story.hand.step == "waits" else story

    def _post(self, story: Story) -> Iterator[Edge]:
        """Each notice is delivered, in any order; as faults it is lost, comes twice, or meets a crash of the door."""
        for notice in story.mail:
            rest = tuple(n for n in story.mail if n != notice)
            yield f"the notice of change {notice[0]} comes", self._taken(story._replace(mail=rest), notice)
            if story.faults:
                spent = story._replace(faults=story.faults - 1)
                yield "a notice is lost", spent._replace(mail=rest)
                yield "a notice will come again", self._taken(spent, notice)
                if self.hearing.answered == "before":
                    crashed = spent._replace(mail=rest, told=story.told | 1 << notice[0])
                    yield "the door stops when it has answered", crashed

    def _taken(self, story: Story, notice: Told) -> Story:
        event = 1 if self.hearing.known_by == "operation" else 1 << notice[0]
        told = story._replace(told=story.told | 1 << notice[0])
        if story.stored & event:
            return told
        return told._replace(stored=story.stored | event, inbox=tuple(sorted((*story.inbox, notice))))

    def _forged(self, story: Story) -> Iterator[Edge]:
        """Somebody without the secret guesses the id of the next event, or tells of a success that is none."""
        if self.hearing.signature:
            return
        number = story.changes + 1
        for says in (SUCCEEDED, FAILED):
            if not story.stored & 1 << number:
                forged = story._replace(stored=story.stored | 1 << number, inbox=(*story.inbox, (number, says)))
                yield f"a forged notice says {says}", forged

    # --- notices that are stored ---

    def _heard(self, story: Story) -> Iterator[Edge]:
        for notice in story.inbox:
            rest = story._replace(inbox=tuple(n for n in story.inbox if n != notice))
            known = self.named or story.ref
            way = course(O(story.operation) if known else None, notice[1])
            if way == Course.NOBODY:
                yield from self._unnamed(rest, story)
                continue
            yield f"a notice is acted on: {way}", self._acted(rest, story, notice, way)

    def _unnamed(self, rest: Story, story: Story) -> Iterator[Edge]:
        """Its payment is compared, which finds our own reference at the provider, once nothing of it is in doubt."""
        if self.hearing.unnamed == "dropped":
            yield "a notice of something unknown is dropped", rest
        elif story.operation in ENDED:
            yield "the payment is compared", rest._replace(hinted=True)

    def _acted(self, rest: Story, story: Story, notice: Told, way: Course) -> Story:
        hearing = self.hearing
        if hearing.notice_is == "state" or (hearing.notice_is == "end" and way == Course.WAKE):
            return self._believed(rest, notice[1])
        if way == Course.WAKE:
            if story.hand.step:
                return rest if hearing.busy == "used_up" else story
            return rest._replace(due=True)
        if way == Course.NOTED or hearing.after_the_end != "hint" or story.operation == O.RETURNED:
            return rest
        return rest._replace(hinted=True)

    def _believed(self, story: Story, says: str) -> Story:
        """A mutant's way: what the notice says becomes what is so; one of the two even takes it for a proof."""
        if says == PENDING:
            return self._moved(story, S.RECONCILING, O.PENDING)
        end = S.COMPLETED if says == SUCCEEDED else S.FAILED
        known = O.SUCCEEDED if says == SUCCEEDED else O.FAILED
        return self._moved(story, end, known, proof=self.hearing.notice_is == "state")

    # --- the task's own worker ---

    def _worker(self, story: Story) -> Iterator[Edge]:
        step, saw, was = story.hand
        if step == "waits" and story.faults:
            dead = story._replace(hand=Eye(), due=True, faults=story.faults - 1)
            yield "the worker dies", dead
        if step == "knows" and was == "answer":
            after = story._replace(hand=Eye())
            lost = story.status != S.EXECUTING  # its guard, in a mutant only
            yield "the answer is recorded", after if lost else self._recorded(after, saw)
        elif step == "knows":
            yield "the look is recorded", self._looked(story._replace(hand=Eye()), saw, was == "horizon")
        elif step == "asks":
            yield "the provider is asked", story._replace(hand=story.hand._replace(step="knows", saw=story.truth))
            if story.faults:
                yield "the provider tells nothing", story._replace(hand=Eye(), deaf=True, faults=story.faults - 1)
        elif not step and story.due and story.status == S.EXECUTING:
            yield "it is found executing", self._moved(story, S.RECONCILING, O.UNKNOWN)
        elif not step and story.due:
            began = Eye("asks", was="horizon" if story.horizon else "")
            yield "a look begins", story._replace(hand=began, due=False, deaf=False)

    def _recorded(self, story: Story, answer: str) -> Story:
        if answer == "unknown":
            return self._moved(story, S.RECONCILING, O.UNKNOWN)
        if answer == "refused":
            return self._moved(story, S.FAILED, O.FAILED, proof=True)
        known = story._replace(ref=True)
        if answer == PENDING:
            return self._moved(known, S.RECONCILING, O.PENDING)
        return self._moved(known, S.COMPLETED, O.SUCCEEDED, proof=True)

    def _looked(self, story: Story, saw: str, horizon: bool) -> Story:
        """By the clock as it was when the question was written down."""
        verdict = decide(Situation(
            FINDINGS[saw], cancel_wished=story.wished, aged=horizon, absent_counts=horizon, horizon_passed=horizon,
            no_sender=True, resend_ended=True,
        ))
        known = story if saw == NOTHING else story._replace(ref=True, case="")
        match verdict:
            case Verdict.COMPLETE | Verdict.COMPLETE_TOO_LATE:
                return self._moved(known, S.COMPLETED, O.SUCCEEDED, proof=True)
            case Verdict.DECLINED:
                return self._moved(known, S.CANCELLED if story.wished else S.FAILED, O.FAILED, proof=True)
            case Verdict.NOT_EXECUTED:
                return self._moved(known, S.CANCELLED, O.NOT_EXECUTED, proof=True)
            case Verdict.CASE_ABSENT_FINAL:
                return self._moved(known._replace(case="ABSENT_FINAL"), S.RECONCILING, O.UNKNOWN)
        return self._moved(known, S.RECONCILING, O.PENDING if saw == PENDING else O.UNKNOWN)

    # --- whoever looks at proved outcomes ---

    def _watch(self, story: Story, number: int) -> Iterator[Edge]:
        eye = story.eyes[number]
        if not eye.step and story.hinted and story.operation in ENDED:
            yield "a proved outcome is looked at", self._eye(
                story, number, Eye("asks", was=story.operation))._replace(hinted=False)
        elif eye.step == "asks":
            yield "the provider is asked once more", self._eye(
                story, number, eye._replace(step="knows", saw=story.truth))
            if story.faults:
                spent = self._eye(story, number, Eye())._replace(faults=story.faults - 1)
                again = self.hearing.told_nothing == "again"
                hinted = story.hinted or (again and story.operation in ENDED)
                yield "the provider tells nothing once more", spent._replace(hinted=hinted)
                again = self.hearing.look_that_dies == "again"
                hinted = story.hinted or (again and story.operation in ENDED)
                yield "whoever looks once more dies", spent._replace(hinted=hinted)
        elif eye.step == "knows":
            yield "that look is recorded", self._followed(self._eye(story, number, Eye()), eye)

    def _eye(self, story: Story, number: int, eye: Eye) -> Story:
        eyes = (eye, story.eyes[1]) if number == 0 else (story.eyes[0], eye)
        return story._replace(eyes=eyes)

    def _followed(self, story: Story, eye: Eye) -> Story:
        hearing = self.hearing
        if hearing.looks_as_if_open:
            return self._looked(story, eye.saw, True)
        verdict = decide(Situation(FINDINGS[eye.saw], ended_as=O(eye.was)))
        if hearing.follow_is_guarded and story.operation != eye.was:
            return story
        if verdict == Verdict.CASE_LATE_ACCEPTED:
            return story._replace(case="LATE_EXECUTION")
        if verdict not in {Verdict.CASE_LATE, Verdict.CASE_RETURNED}:
            return story
        landed = verdict == Verdict.CASE_LATE
        booked = (1 if hearing.late_is_booked else 0) if landed else (-1 if hearing.return_is_booked else 0)
        followed = story._replace(
            case="LATE_EXECUTION" if landed else "RETURNED", refunded=story.refunded + booked,
            hinted=landed and hearing.looks_once_more, ref=True,
        )
        followed = self._operation(followed, O.SUCCEEDED if landed else O.RETURNED)
        if hearing.task_follows:
            return self._status(followed, S.COMPLETED if landed else S.FAILED)
        return followed

    # --- time, and people ---

    def _time(self, story: Story) -> Iterator[Edge]:
        idle = not story.hand.step
        if story.status == S.RECONCILING and idle and not story.due:
            yield "the next look is due", story._replace(due=True)
        if story.operation in {O.NOT_EXECUTED, O.FAILED} and not story.hinted:
            yield "the late watch looks", story._replace(hinted=True)
        if story.status == S.RECONCILING and not story.wished:
            yield "a cancel is wished", story._replace(wished=True)
        if story.case == "ABSENT_FINAL" and story.status == S.RECONCILING and idle and not story.due:
            yield "two persons declare it not executed", self._moved(story, S.FAILED, O.NOT_EXECUTED, proof=True)
        if story.status == S.RECONCILING and not story.horizon:
            if not story.wire:
                yield "the horizon passes", story._replace(horizon=True)
            elif story.faults:
                yield "a request is slower than the horizon", story._replace(horizon=True, faults=story.faults - 1)

    # --- what is written ---

    def _moved(self, story: Story, to: Status, operation: OperationState, *, proof: bool = False) -> Story:
        """Task and operation after a transition; raises Broken for what the product's tables or I7 forbid."""
        moved = self._status(self._operation(story, operation), to)
        if to.value not in FINAL:
            return moved
        if not proof:
            raise Broken("an end that rests on no answer of the provider's")
        done = to == S.COMPLETED
        return moved._replace(held=False, due=False, deaf=False, refunded=story.refunded + (1 if done else 0),
                              case="" if story.case == "ABSENT_FINAL" else story.case)

    def _status(self, story: Story, to: Status) -> Story:
        if to != story.status and (story.status, to.value) not in LEGAL:
            raise Broken(f"illegal move from {story.status} to {to}")
        return story._replace(status=to.value)

    def _operation(self, story: Story, to: OperationState) -> Story:
        if to != story.operation and (story.operation, to.value) not in OPERATION_LEGAL:
            raise Broken(f"illegal move of the operation from {story.operation} to {to}")
        return story._replace(operation=to.value)


_FITS: dict[str, frozenset[str]] = {
    NOTHING: frozenset({O.UNKNOWN, O.NOT_EXECUTED, O.FAILED}), PENDING: frozenset({O.PENDING}),
    SUCCEEDED: frozenset({O.SUCCEEDED}), FAILED: frozenset({O.FAILED, O.RETURNED, O.NOT_EXECUTED}),
}


def at_rest(story: Story) -> bool:
    """Nothing is on its way, and nobody has begun anything or been told to."""
    busy = story.hand.step or any(eye.step for eye in story.eyes) or story.hinted or story.due
    return not (busy or story.mail or story.inbox or story.wire or story.status == S.EXECUTING)


def fits(story: Story) -> bool:
    accepted_late = story.truth == PENDING and story.operation in ENDED and story.case == "LATE_EXECUTION"
    return story.operation in _FITS[story.truth] or accepted_late


def wrong(story: Story) -> str | None:
    """What is wrong with this state, in words; None when it is safe."""
    if story.refunded != (story.operation == O.SUCCEEDED):
        return f"the balance counts {story.refunded} for an operation that is {story.operation}"
    if story.held != (story.status not in FINAL):
        return f"{story.status} with the hold {'held' if story.held else 'free'}"
    if story.status == S.CANCELLED and story.operation == O.SUCCEEDED and story.case != "LATE_EXECUTION":
        return "a refund of a cancelled task without a case"
    if story.operation == O.RETURNED and story.case != "RETURNED":
        return "money that came back without a case"
    if at_rest(story) and not fits(story) and not story.deaf and story.told & 1 << story.changes:
        return f"told that it {story.truth or 'is nothing'}, it rests as {story.operation}"
    return None


def settled(story: Story) -> bool:
    """What must be reachable from everywhere without a fault: rest, with the books as the provider's, but for what the
    provider changed last and told nobody; that is left to the statements."""
    return at_rest(story) and (fits(story) or not story.told & 1 << story.changes)


def canonical(story: Story) -> Story:
    """The two who look at proved outcomes are alike."""
    left, right = story.eyes
    return story if left <= right else story._replace(eyes=(right, left))
