"""Draining: claim what is due, run its handlers, commit what they decide, until nothing is due or the time is up.

Pure steps run in this thread and are committed together. Steps that talk to an outside system run beside each other
in threads, without a database, and are committed as they arrive, so that nothing the provider has booked waits for a
slower neighbour. A task goes on under the same lease for as long as its next step is due at once.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from uuid import UUID

from django.db import DatabaseError, InterfaceError, OperationalError, connection
from rq.timeouts import JobTimeoutException

from runtime_app import leases
from runtime_app.adapters.payments.types import Deadline
from runtime_app.chronicle import Say
from runtime_app.leases import Claimed
from runtime_app.ledger.steps import AddStep
from runtime_app.points import point
from runtime_app.reconciliation.schedule import backoff
from runtime_app.senders import SenderLocks
from runtime_app.states import FINAL, WAITING_FOR_PEOPLE, Parked, Status
from runtime_app.transitions import NOW, After, Applied, Refused, Result, Transition, Wanted, apply
from runtime_app.workflows import WORKFLOWS
from runtime_app.workflows.types import Facts, Ports, Workflow

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Hand:
    """A task in this worker's hand. `lease_until` is on the monotonic clock, and moves when the lease is renewed."""

    task: Claimed
    workflow: Workflow
    lease_until: float
    facts: Any = None
    lock: UUID | None = None
    losses: int = 0  # of all sender's locks, before this one was taken
    send_by: float = math.inf  # the last possible send as it is written in the operation, on the monotonic clock


@dataclass(frozen=True, slots=True)
class Decided:
    """What a step decided. `effect`: something may have been sent, so the outcome is never dropped."""

    hand: Hand
    transition: Transition
    name: str
    active_ms: float
    effect: bool = False


class Drain:
    """One process's drain of one lane. Not re-entrant; `stop` may be set from a signal handler."""

    def __init__(self, *, lane: str, worker: str, ports: Ports, batch: int, effects: int) -> None:
        self.lane, self.worker, self.ports, self.batch = lane, worker, ports, batch
        self.served = [w.served for w in WORKFLOWS.values() if w.lane == lane]
        self.pool = ThreadPoolExecutor(effects, thread_name_prefix="effect")
        self.locks = SenderLocks()
        self.hands: dict[UUID, Hand] = {}
        self.running: dict[Future[Decided], Hand] = {}
        self.stop = threading.Event()

    def run(self, seconds: float, ring: Callable[[], object]) -> bool:
        """Work for at most about `seconds`; True when there was still something due at the end."""
        until = time.monotonic() + seconds
        done = threading.Event()
        heart = threading.Thread(target=self._renew_until, args=(done,), name="renew", daemon=True)
        heart.start()
        try:
            return self._loop(until, ring)
        except BaseException as error:
            self._cut_off(error)
            raise
        finally:
            done.set()
            heart.join()

    def _loop(self, until: float, ring: Callable[[], object]) -> bool:
        due = True
        while True:
            room = self.batch - len(self.hands)
            may_claim = time.monotonic() < until and not self.stop.is_set()
            if may_claim and (due or not self.hands) and room >= (self.batch + 1) // 2:
                try:
                    hands = self._claim(room)
                except DatabaseError:
                    if not self.running:
                        raise
                    log.warning("nothing claimed: the database does not answer", exc_info=True)
                    connection.close_if_unusable_or_obsolete()
                    hands = []  # what is in flight is recorded first, however long that takes
                due = len(hands) == room
                if due:
                    ring()
                self._commit(self._start(hands))
            if self.running:
                arrived = self._arrived()
                due = due or not arrived  # a slow answer: look for other work meanwhile
                self._commit(arrived)
            elif not may_claim or not due:
                return due

    def _claim(self, limit: int) -> list[Hand]:
        lease = self.ports.timing.lease
        begun = time.monotonic()
        claimed = leases.claim(lane=self.lane, served=self.served, worker=self.worker, limit=limit, seconds=lease)
        hands = [Hand(task, WORKFLOWS[task.workflow, task.workflow_version], begun + lease) for task in claimed]
        self.hands.update((hand.task.id, hand) for hand in hands)
        return hands

    def _start(self, hands: Sequence[Hand]) -> list[Decided]:
        """Run the handlers of these tasks: pure ones now, the others in threads."""
        decided = []
        for workflow in {id(h.workflow): h.workflow for h in hands}.values():
            own = [h for h in hands if h.workflow is workflow]
            try:
                loaded = workflow.load([h.task for h in own])
            except DatabaseError:
                log.warning("facts not read for %d tasks; found again when their leases end", len(own), exc_info=True)
                connection.close_if_unusable_or_obsolete()
                for hand in own:
                    self._drop(hand)
                continue
            except JobTimeoutException:
                raise
            except Exception:  # what is wrong with the facts of one of them is no matter of the others
                log.exception("facts not read for %d tasks at once; one at a time", len(own))
                loaded, raised = self._load_alone(own)
                decided += raised
                own = [hand for hand in own if hand.task.id in loaded]
            for hand in own:
                hand.facts = loaded.get(hand.task.id) or Facts(hand.task)
                handler = workflow.handlers[hand.task.status]
                if self._used_up(hand):
                    decided.append(Decided(hand, _dead_letter(), "retries", 0.0))
                elif handler.waits_outside:
                    self._submit(hand, handler.run, f"on_{hand.task.status}", effect=False)
                else:
                    decided.append(self._step(hand, handler.run, f"on_{hand.task.status}", False))
        return decided

    def _load_alone(self, own: Sequence[Hand]) -> tuple[dict[UUID, Any], list[Decided]]:
        """The facts of each; those that cannot be read count as a step that raised."""
        loaded: dict[UUID, Any] = {}
        raised = []
        for hand in own:
            try:
                loaded[hand.task.id] = hand.workflow.load([hand.task]).get(hand.task.id) or Facts(hand.task)
            except JobTimeoutException:
                raise
            except Exception as error:
                log.exception("facts of task %s not read", hand.task.id)
                instead = _dead_letter() if self._used_up(hand) else self._raised(hand, error, False)
                raised.append(Decided(hand, instead, "facts not read", 0.0))
        return loaded, raised

    def _used_up(self, hand: Hand) -> bool:
        # An executing task is always looked at: leaving it would leave money in doubt without anybody asking.
        return hand.task.starts > self.ports.timing.retry_budget and hand.task.status != Status.EXECUTING

    def _submit(self, hand: Hand, run: Callable[[Any, Ports], Transition], name: str, *, effect: bool) -> None:
        self.running[self.pool.submit(self._step, hand, run, name, effect)] = hand

    def _step(self, hand: Hand, run: Callable[[Any, Ports], Transition], name: str, effect: bool) -> Decided:
        begun = time.perf_counter()
        ports = replace(
            self.ports, deadline=Deadline(hand.lease_until), send_by=Deadline(hand.send_by),
            sender_holds=partial(self._sender_holds, hand),
        )
        try:
            transition = run(hand.facts, ports)
        except JobTimeoutException:
            raise  # the job's time is over, which is no failure of this task
        except Exception as error:  # one task that raises does not fail its batch
            log.exception("%s of task %s raised", name, hand.task.id)
            transition = self._raised(hand, error, effect)
        return Decided(hand, transition, name, (time.perf_counter() - begun) * 1000, effect)

    def _sender_holds(self, hand: Hand, operation_id: UUID) -> bool:
        # This hand, not this process: a task whose lease ran out may be here twice, once with a send still running.
        if self.stop.is_set():  # whoever comes next does it; nothing is begun here any more
            return False
        held = hand.lock == operation_id and hand.losses == self.locks.losses
        return held and self.locks.still_held(operation_id)

    def _raised(self, hand: Hand, error: Exception, effect: bool) -> Transition:
        if effect and hand.task.status == Status.EXECUTING:
            return hand.workflow.handlers[Status.EXECUTING].run(hand.facts, self.ports)  # it may have been sent
        why = f"{type(error).__name__} in {hand.task.status}"
        again = After(backoff(self.ports.timing, hand.task.starts))
        return Transition(
            events=(Say("task.postponed", {"why": why}),), due=again, columns={"last_error": why}, starts=None
        )

    def _arrived(self) -> list[Decided]:
        """Wait for at least one thread to finish and take all that have."""
        finished, _ = wait(self.running, timeout=1.0, return_when=FIRST_COMPLETED)
        for future in finished:
            del self.running[future]
        return [future.result() for future in finished]

    def _commit(self, decided: Sequence[Decided]) -> None:
        """Commit what was decided, and go on with what is due at once, until only threads are left."""
        while decided:
            ready = [self._with_lock(each) for each in decided]
            follow, going_on = [], []
            begun = time.monotonic()
            for each, result in zip(ready, self._apply(ready), strict=True):
                refused = _instead(each.transition, result)
                if refused is not None:
                    self._give_back(each.hand)
                    follow.append(replace(each, transition=refused))
                elif isinstance(result, Applied) and self._goes_on(each, result, begun):
                    going_on.append(each.hand)
                elif not isinstance(result, Applied) or each.transition.then is None:
                    self._drop(each.hand)
            decided = follow + self._start(going_on)

    def _with_lock(self, each: Decided) -> Decided:
        transition, hand = each.transition, each.hand
        wanted = transition.lock if hand.lock is None else None
        if wanted is not None and not self._take(hand, wanted) and transition.to == Status.EXECUTING:
            # Somebody who was paused may still send this very operation; nothing is handed over beside it. That is no
            # failure of this task, and uses up nothing.
            timing, starts = self.ports.timing, hand.task.starts
            transition = Transition(due=After(backoff(timing, starts)), starts=min(starts, timing.retry_budget - 1))
        step = AddStep(each.name, transition.to or "stays", each.active_ms, hand.task.fence)
        transition = replace(
            transition, parts=(*transition.parts, step),
            keep_lease=transition.keep_lease or self._continues(transition, hand.task.status),
        )
        return Decided(hand, transition, each.name, each.active_ms, each.effect)

    def _continues(self, transition: Transition, status: Status) -> bool:
        """The next step is due at once, so the task goes on under the lease it has."""
        to = transition.to or status
        moved = transition.to is not None and transition.then is None and transition.due == NOW
        return moved and to not in FINAL and to not in WAITING_FOR_PEOPLE and not self.stop.is_set()

    def _goes_on(self, each: Decided, result: Applied, begun: float) -> bool:
        hand, transition = each.hand, each.transition
        for name, value in result.columns.items():
            if name in _KEPT:
                setattr(hand.task, name, value)
        hand.task.now = result.now
        if transition.then is not None:
            if hasattr(hand.facts, "task"):
                hand.facts = replace(hand.facts, task=hand.task)
            # What may be sent is committed with a lease from the commit on; a renewal does not prolong that.
            hand.send_by = begun + self.ports.timing.lease
            self._submit(hand, transition.then, f"{each.name}.then", effect=True)
            return False
        return transition.keep_lease and transition.to is not None

    def _apply(self, ready: Sequence[Decided]) -> list[Result | None]:
        try:
            return list(apply([self._wanted(each) for each in ready]))
        except JobTimeoutException:
            raise
        except Exception:  # whatever one of them holds that cannot be written, the others are recorded
            log.exception("a batch of %d failed; one at a time", len(ready))
            return [self._apply_alone(each) for each in ready]

    def _apply_alone(self, each: Decided) -> Result | None:
        """One transition by itself. An outcome is tried again until it is recorded; anything else is found again.

        None when it was not applied. What cannot be written counts as a step that raised, and so it ends parked.
        """
        tries = 0
        while True:
            connection.close_if_unusable_or_obsolete()
            try:
                return apply([self._wanted(each)])[0]
            except (OperationalError, InterfaceError):
                log.warning("the database does not answer; task %s", each.hand.task.id, exc_info=True)
                if not each.effect or self.stop.wait(min(5.0, 0.1 * 2**tries)):
                    return None
                tries += 1
            except JobTimeoutException:
                raise
            except Exception as error:
                log.exception("what was decided for task %s cannot be recorded", each.hand.task.id)
                if each.name != _UNWRITTEN:
                    self._say(each.hand, self._raised(each.hand, error, each.effect), _UNWRITTEN, each.effect)
                return None

    def _say(self, hand: Hand, transition: Transition, name: str, effect: bool = False) -> None:
        """Record this instead of what was decided; the task is then out of this hand."""
        step = AddStep(name, transition.to or "stays", 0.0, hand.task.fence)
        self._apply_alone(Decided(hand, replace(transition, parts=(*transition.parts, step)), name, 0.0, effect))

    def _wanted(self, each: Decided) -> Wanted:
        return Wanted(each.hand.task.guard, each.transition, f"worker:{self.worker}")

    def _drop(self, hand: Hand) -> None:
        self._give_back(hand)
        if self.hands.get(hand.task.id) is hand:
            del self.hands[hand.task.id]

    def _take(self, hand: Hand, operation_id: UUID) -> bool:
        if not self.locks.take(operation_id):
            return False
        hand.lock, hand.losses = operation_id, self.locks.losses
        return True

    def _give_back(self, hand: Hand) -> None:
        # One that was lost with its connection may be another hand's of this process by now.
        if hand.lock is not None and hand.losses == self.locks.losses:
            self.locks.give_back(hand.lock)
        hand.lock = None

    def _renew_until(self, done: threading.Event) -> None:
        lease = self.ports.timing.lease
        try:
            while not done.wait(lease / 3):
                held = [(hand.task.id, hand.task.fence) for hand in list(self.hands.values())]
                begun = time.monotonic()
                try:
                    renewed = leases.renew(held, worker=self.worker, seconds=lease)
                except (DatabaseError, InterfaceError):
                    log.warning("leases not renewed", exc_info=True)
                    connection.close()
                    continue
                point("leases.renewed")
                for task_id in renewed:
                    if (hand := self.hands.get(task_id)) is not None:
                        hand.lease_until = begun + lease
        finally:
            connection.close()

    def _cut_off(self, error: BaseException) -> None:
        """The run ends in the middle (a time limit, a lost database). Threads finish their calls and keep their locks
        until then; every task is found again when its lease ends, one that may have been sent as unknown."""
        log.warning("cut off by %s with %d tasks in hand", type(error).__name__, len(self.hands))
        for future in self.running:
            future.cancel()  # one that still waits for a thread sends nothing any more
        try:
            if isinstance(error, JobTimeoutException):
                self._say_cut_off()
        finally:
            for future, hand in self.running.items():
                future.add_done_callback(lambda _, hand=hand: self._give_back(hand))  # type: ignore[misc]  # a default
            running = set(map(id, self.running.values()))
            for hand in self.hands.values():
                if id(hand) not in running:
                    self._give_back(hand)
            self.hands, self.running = {}, {}

    def _say_cut_off(self) -> None:
        """Nobody will record the answers of the calls in flight: their tasks are in doubt from now on."""
        doubtful = [h for h in self.running.values() if h.task.status == Status.EXECUTING]
        for hand in doubtful:
            transition = hand.workflow.handlers[Status.EXECUTING].run(hand.facts, self.ports)
            self._say(hand, transition, "cut off by the time limit")

    def close(self) -> None:
        self.pool.shutdown(wait=True)
        self.locks.close()


_UNWRITTEN = "what was decided cannot be recorded"
_KEPT = frozenset(Claimed.__dataclass_fields__) - {"id", "tenant_id"}


def _instead(transition: Transition, result: Result | None) -> Transition | None:
    """What is to be done instead of what a part has refused."""
    if not isinstance(result, Refused):
        return None
    found = transition.if_refused.get(result.refusal.code)
    return found(result.refusal) if callable(found) else found


def _dead_letter() -> Transition:
    return Transition(
        events=(Say("task.parked", {"reason": Parked.DEAD_LETTER}),), columns={"parked_reason": Parked.DEAD_LETTER},
        due=NOW, starts=None,
    )
