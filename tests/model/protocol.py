"""The protocol as it is built, step by step, over the product's own state table and decision table.

`Protocol` says in which ways a mutant departs from it. A stall needs no step of its own: a worker that does nothing
while others act is stalled. What costs a fault is that its lease runs out meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from runtime_app.reconciliation import table
from runtime_app.reconciliation.table import Finding, Situation, Verdict
from runtime_app.states import OperationState, Status
from runtime_app.timing import Timing
from runtime_app.workflows.refund.reconcile import FROZEN_BY
from tests.model.world import (
    BEFORE_SUBMISSION,
    DEADLINE,
    ENDED,
    FINAL,
    FORGOTTEN,
    HORIZON,
    LEGAL,
    OPERATION_LEGAL,
    RECENT,
    REMEMBERED,
    SUBMITTED,
    Broken,
    Hand,
    Message,
    Provider,
    Step,
    World,
)

S, O, RESENDS = Status, OperationState, Timing().resend_most  # noqa: E741 - short names for the rules below
Edge = tuple[str, World]
SENDING = frozenset({Step.SENDING, Step.AT_WIRE, Step.AWAITING})


@dataclass(frozen=True, slots=True)
class Protocol:
    """As built by default; each field that differs makes a mutant."""

    lock: str = "before_intent"  # none | after_intent | lease_reread
    lock_kept_until: str = "recorded"  # sent
    lock_of: str = "hand"  # process
    guard: str = "full"  # status | none
    believes_without_lock: bool = False
    unknown_is: str = "unknown"  # failed
    executing_found: str = "reconciling"  # sent_again | ready
    new_key_per_attempt: bool = False
    cancel_after_submission: str = "wish"  # ends
    resends_past_window: bool = False
    resends_without_promise: bool = False
    resends_on_changed_facts: bool = False
    checks_facts_when_ready: bool = True
    absent_is_failed: bool = False
    inconclusive_is_absent: bool = False
    pending_is_done: bool = False
    unknown_frees_hold: bool = False
    clock_read_after_look: bool = False
    send_in_doubt_is_not_sent: bool = False

    @property
    def locks(self) -> bool:
        return self.lock in {"before_intent", "after_intent"}


@cache
def decide(situation: Situation) -> Verdict:
    return table.decide(situation).verdict


@dataclass(frozen=True, slots=True)
class Rules:
    protocol: Protocol
    provider: Provider
    lifted: frozenset[str] = frozenset()  # of LIMITS

    # --- writing ---

    def _hand(self, world: World, who: int, hand: Hand, **changes: Any) -> World:
        hands = (hand, world.hands[1]) if who == 0 else (world.hands[0], hand)
        return world._replace(hands=hands, **changes)

    def _drop(self, world: World, who: int, **changes: Any) -> World:
        """The hand lets go of the task, and of the lock if it has it."""
        lock = -1 if world.lock == who else world.lock
        return self._hand(world, who, Hand(), lock=lock, **changes)

    def _holds(self, world: World, who: int, status: Status) -> bool:
        if self.protocol.guard == "none":
            return True
        if self.protocol.guard == "status":
            return world.status == status
        return world.hands[who].valid and world.status == status

    def _moved(self, world: World, to: Status, operation: OperationState | None, **changes: Any) -> World:
        """The task's row after a transition; raises Broken for a move the product's tables do not have."""
        if (world.status, to.value) not in LEGAL and to != world.status:
            raise Broken(f"illegal move from {world.status} to {to}")
        known = world.operation
        changed = operation is not None and known is not None and operation != known
        if changed and (known, operation and operation.value) not in OPERATION_LEGAL:
            raise Broken(f"illegal move of the operation from {known} to {operation}")
        if to.value in FINAL:
            changes |= {"hold": "consumed" if to == S.COMPLETED else "", "due": False}
        return world._replace(status=to.value, operation=known if operation is None else operation.value, **changes)

    # --- what may happen ---

    def edges(self, world: World) -> Iterator[Edge]:
        """Everything that may happen now, faults last."""
        yield from self._time(world)
        yield from self._people(world)
        yield from self._wire(world)
        for who in (0, 1):
            yield from self._work(world, who)
        if world.faults:
            spent = world._replace(faults=world.faults - 1)
            for who in (0, 1):
                yield from self._faults(spent, who)

    def _time(self, world: World) -> Iterator[Edge]:
        """Each of these is longer than a lease: it passes only when no lease is in order, so a stall costs a fault."""
        hands = world.hands
        if world.status not in SUBMITTED or (not world.due and any(h.valid and h.step != Step.IDLE for h in hands)):
            return
        cut_off = any(h.step in {Step.SENDING, Step.AT_WIRE} and h.cut_off for h in hands)
        if world.since == RECENT and (not cut_off or "cut_off_in_a_stall" in self.lifted):
            yield "the send deadline passes", world._replace(since=DEADLINE)
        if world.since == DEADLINE and not world.wire:
            yield "the horizon passes", world._replace(since=HORIZON)
        if not world.counts and world.since >= DEADLINE and (not self._prompt_liar or not world.wire):
            yield "absence counts from now on", world._replace(counts=True)
        if world.key == REMEMBERED and world.counts and world.since == HORIZON:
            yield "the key's window ends", world._replace(key=ENDED)
        sending = any(h.step in SENDING for h in hands) and "stall_of_a_window" not in self.lifted
        if world.key == ENDED and not world.wire and not sending:
            yield "the provider forgets keys", world._replace(key=FORGOTTEN, known=0, provider_burned=False)

    def _people(self, world: World) -> Iterator[Edge]:
        if world.status in FINAL:
            return
        if not (world.facts or world.steady):
            yield "the order changes", world._replace(facts=1)
        void = (world.hands[0]._replace(valid=False), world.hands[1]._replace(valid=False))
        if world.status == S.WAITING_APPROVAL:
            yield "approved", self._moved(world, S.READY, None, hold="held", due=True, hands=void)
            yield "refused", self._moved(world, S.REJECTED, None, hands=void)
        if world.asked_cancel:
            return
        asked = world._replace(asked_cancel=True)
        if world.status in BEFORE_SUBMISSION:
            yield "cancelled", self._moved(asked, S.CANCELLED, None, hands=void)
        elif self.protocol.cancel_after_submission == "ends":
            ended = O.NOT_EXECUTED if world.operation in {O.UNKNOWN, O.PENDING} else O.FAILED
            yield "cancelled at once", asked._replace(
                status=S.CANCELLED.value, operation=ended.value, hold="", due=False, hands=void)
        else:
            yield "cancel wished", asked._replace(wished=True)

    # --- the provider ---

    def _wire(self, world: World) -> Iterator[Edge]:
        for message in set(world.wire):
            after, answer = self._acted(world, message)
            yield "the provider acts", self._told(after, message, answer)
            if message.sender < 0:
                yield "a request is lost", self._off_wire(world, message)
            elif world.faults:
                spent = world._replace(faults=world.faults - 1)
                yield "a request is lost", self._told(self._off_wire(spent, message), message, "unknown")
                yield "an answer is lost", self._told(after._replace(faults=world.faults - 1), message, "unknown")
                if self.provider.remembers and not world.known & message.key:
                    burned = self._off_wire(spent, message)._replace(
                        known=world.known | message.key, provider_burned=True)
                    yield "a server error is stored under the key", self._told(burned, message, "unknown")
        if world.refund == "pending":
            yield "it settles", world._replace(refund="succeeded")
            yield "it fails after all", world._replace(refund="failed", effects=world.effects - 1)

    def _off_wire(self, world: World, message: Message) -> World:
        wire = list(world.wire)
        wire.remove(message)
        return world._replace(wire=tuple(wire))

    def _acted(self, world: World, message: Message) -> tuple[World, str]:
        after = self._off_wire(world, message)
        if world.known & message.key:
            if world.provider_burned:
                return after, "burned"
            return after, "refused" if self.provider.answers == "refuses" else "ok"
        if self.provider.remembers:
            after = after._replace(known=world.known | message.key)
        if self.provider.answers == "refuses":
            return after, "refused"
        pends = self.provider.answers == "pends"
        return after._replace(effects=world.effects + 1, refund="pending" if pends else "succeeded"), (
            "pending" if pends else "ok")

    def _told(self, world: World, message: Message, answer: str) -> World:
        if message.sender < 0:
            return world
        hand = world.hands[message.sender]
        return self._hand(world, message.sender, hand._replace(step=Step.ANSWERED, saw=answer))

    @property
    def _prompt_liar(self) -> bool:
        return self.provider.lies and "liar_that_is_slow" not in self.lifted

    # --- a worker ---

    def _work(self, world: World, who: int) -> Iterator[Edge]:
        hand = world.hands[who]
        if hand.step == Step.IDLE:
            if world.due:
                yield f"worker {who} claims", self._claimed(world, who)
            return
        if hand.step == Step.AWAITING:
            return
        after = _STEPS[hand.step](self, world, who, hand)
        yield f"worker {who} goes on from {hand.step}", after
        if hand.step == Step.ASKING and world.faults:
            inconclusive = hand._replace(step=Step.FOUND, saw=Finding.INCONCLUSIVE.value)
            yield f"worker {who} is told nothing", self._hand(world, who, inconclusive, faults=world.faults - 1)

    def _claimed(self, world: World, who: int) -> World:
        step = _CLAIMED.get(world.status, Step.ASK)
        other = world.hands[1 - who]._replace(valid=False)
        if other.step == Step.IDLE:
            other = Hand()
        hand = Hand(step=step, valid=True, wished=world.wished)
        return world._replace(hands=(hand, other) if who == 0 else (other, hand), due=False)

    def _judge(self, world: World, who: int, hand: Hand) -> World:
        return self._hand(world, who, hand._replace(step=Step.JUDGED, saw=str(world.facts)))

    def _judged(self, world: World, who: int, hand: Hand) -> World:
        if not self._holds(world, who, S.QUEUED):
            return self._drop(world, who)
        return self._drop(self._moved(world, S.WAITING_APPROVAL, None, approved=int(hand.saw)), who, due=False)

    def _check(self, world: World, who: int, hand: Hand) -> World:
        return self._hand(world, who, hand._replace(step=Step.CHECKED, saw=str(world.facts)))

    def _checked(self, world: World, who: int, hand: Hand) -> World:
        """Facts that changed are judged anew; else the sender's lock is taken, or the task is left for later."""
        if self.protocol.checks_facts_when_ready and int(hand.saw) != world.approved:
            if not self._holds(world, who, S.READY):
                return self._drop(world, who)
            return self._drop(self._moved(world, S.QUEUED, None, hold="", due=True), who)
        if self.protocol.lock != "before_intent":
            return self._hand(world, who, hand._replace(step=Step.LOCKED))
        if world.lock >= 0:
            return self._drop(world, who, due=world.due or hand.valid)
        return self._hand(world, who, hand._replace(step=Step.LOCKED), lock=who)

    def _locked(self, world: World, who: int, hand: Hand) -> World:
        """The intent: executing, with the operation and its frozen request."""
        if not self._holds(world, who, S.READY):
            return self._drop(world, who)
        step = Step.UNLOCKED if self.protocol.lock == "after_intent" else Step.SENDING
        moved = self._moved(
            world, S.EXECUTING, O.SUBMITTING, since=RECENT, frozen_facts=int(hand.saw),
            stale=int(hand.saw) != world.approved)
        return self._hand(moved, who, hand._replace(step=step, saw=""))

    def _unlocked(self, world: World, who: int, hand: Hand) -> World:
        if world.lock >= 0:
            return self._drop(world, who)
        return self._hand(world, who, hand._replace(step=Step.SENDING), lock=who)

    def _may_send(self, world: World, who: int, hand: Hand) -> bool:
        if self.protocol.lock == "after_intent":
            return world.lock == who  # what it asked of its lease it asked before it had the lock
        in_lease = hand.valid and not world.due
        return in_lease and (world.lock == who or not self.protocol.locks)

    def _sending(self, world: World, who: int, hand: Hand) -> World:
        if self._may_send(world, who, hand):
            return self._hand(world, who, hand._replace(step=Step.AT_WIRE))
        return self._hand(world, who, hand._replace(step=Step.ANSWERED, saw="not_sent"))

    def _at_wire(self, world: World, who: int, hand: Hand) -> World:
        key = 1 << (1 + world.resends) if self.protocol.new_key_per_attempt else 1
        late = world.since == HORIZON and "slow_after_a_stall" not in self.lifted
        message = Message(who, key, prompt=late or (self._prompt_liar and world.counts))
        free = self.protocol.lock_kept_until == "sent" and world.lock == who
        return self._hand(
            world, who, hand._replace(step=Step.AWAITING), wire=tuple(sorted((*world.wire, message))),
            lock=-1 if free else world.lock)

    def _answered(self, world: World, who: int, hand: Hand) -> World:
        return self._resend_answered(world, who, hand) if hand.resend else self._submit_answered(world, who, hand)

    def _submit_answered(self, world: World, who: int, hand: Hand) -> World:
        if not self._holds(world, who, S.EXECUTING):
            return self._drop(world, who)
        answer = hand.saw
        if answer == "unknown" and self.protocol.unknown_is == "failed":
            answer = "refused"
        if answer == "unknown" and self.protocol.send_in_doubt_is_not_sent:
            answer = "not_sent"
        if answer == "burned":
            answer = "unknown"
        to, operation = {
            "ok": (S.COMPLETED, O.SUCCEEDED), "pending": (S.RECONCILING, O.PENDING), "refused": (S.FAILED, O.FAILED),
            "not_sent": (S.READY, O.PREPARED), "unknown": (S.RECONCILING, O.UNKNOWN),
        }[answer]
        hold = "" if answer == "unknown" and self.protocol.unknown_frees_hold else world.hold
        return self._drop(self._moved(world, to, operation, **({"hold": hold} | {"due": True})), who)

    def _found_executing(self, world: World, who: int, hand: Hand) -> World:
        if not self._holds(world, who, S.EXECUTING):
            return self._drop(world, who)
        if self.protocol.executing_found == "sent_again":
            return self._hand(world, who, hand._replace(step=Step.AT_WIRE))
        if self.protocol.executing_found == "ready":
            return self._drop(self._moved(world, S.READY, O.PREPARED, due=True), who)
        return self._drop(self._moved(world, S.RECONCILING, O.UNKNOWN, due=True), who)

    # --- reconciling ---

    def _ask(self, world: World, who: int, hand: Hand) -> World:
        """The lock is tried, the query written down, the clock read with it."""
        if not self._holds(world, who, S.RECONCILING):
            return self._drop(world, who)
        lock = who if world.lock < 0 else world.lock
        read = hand._replace(step=Step.ASKING, since=world.since, counts=world.counts, key=world.key)
        return self._hand(world, who, read, lock=lock)

    def _asking(self, world: World, who: int, hand: Hand) -> World:
        found = {"succeeded": Finding.SUCCEEDED, "pending": Finding.PENDING, "failed": Finding.FAILED}
        return self._hand(world, who, hand._replace(step=Step.FOUND, saw=found.get(world.refund, Finding.ABSENT).value))

    def _situation(self, world: World, who: int, hand: Hand) -> Situation:
        protocol = self.protocol
        finding = Finding(hand.saw)
        if finding == Finding.INCONCLUSIVE and protocol.inconclusive_is_absent:
            finding = Finding.ABSENT
        since, counts, key = hand.since, hand.counts, hand.key
        if protocol.clock_read_after_look:
            since, counts, key = world.since, world.counts, world.key
        has_lock = world.lock == who or not protocol.locks or protocol.believes_without_lock or (
            protocol.lock_of == "process" and world.lock >= 0)
        ended = world.resends >= RESENDS or (
            (world.burned or key >= ENDED) and not protocol.resends_past_window)
        same = world.facts == world.frozen_facts or protocol.resends_on_changed_facts
        promised = self.provider.promises or protocol.resends_without_promise
        old = key >= ENDED if self.provider.window else counts and since >= HORIZON
        return Situation(
            finding=finding, cancel_wished=hand.wished, absent_counts=counts, horizon_passed=since >= HORIZON,
            no_sender=has_lock and since >= DEADLINE, resend_ended=ended or not same,
            may_resend=not ended and promised and same and self._may_send(world, who, hand),
            pending_too_long=old, can_cancel=True, handover_passed=old,
        )

    def _found(self, world: World, who: int, hand: Hand) -> World:
        if not self._holds(world, who, S.RECONCILING):
            return self._drop(world, who)
        situation = self._situation(world, who, hand)
        if self.protocol.absent_is_failed and situation.finding == Finding.ABSENT:
            return self._drop(self._moved(world, S.FAILED, O.FAILED), who)
        if self.protocol.pending_is_done and situation.finding == Finding.PENDING:
            return self._drop(self._moved(world, S.COMPLETED, O.SUCCEEDED), who)
        return self._follow(world, who, hand, decide(situation))

    def _follow(self, world: World, who: int, hand: Hand, verdict: Verdict) -> World:
        match verdict:
            case Verdict.COMPLETE | Verdict.COMPLETE_TOO_LATE:
                return self._drop(self._moved(world, S.COMPLETED, O.SUCCEEDED), who)
            case Verdict.DECLINED:
                return self._drop(self._moved(world, S.CANCELLED if hand.wished else S.FAILED, O.FAILED), who)
            case Verdict.NOT_EXECUTED:
                return self._drop(self._moved(world, S.CANCELLED, O.NOT_EXECUTED), who)
            case Verdict.RESEND:
                if hand.wished:
                    raise Broken("sent again although a cancel was wished")
                sent = self._moved(
                    world, S.RECONCILING, O.UNKNOWN, resends=world.resends + 1, since=RECENT,
                    stale=world.facts != world.frozen_facts)
                return self._hand(sent, who, hand._replace(step=Step.SENDING, resend=True, saw=""))
            case Verdict.SEND_CANCEL:
                found = self._moved(world, S.RECONCILING, O.PENDING)
                return self._hand(found, who, hand._replace(step=Step.CANCELLING))
        pending = verdict in {Verdict.WAIT_PENDING, Verdict.CASE_STALE_PENDING}
        case = verdict.value.partition("case:")[2]
        frozen = verdict == Verdict.CASE_MISMATCH or case in FROZEN_BY
        return self._drop(self._moved(
            world, S.RECONCILING, O.PENDING if pending else O.UNKNOWN, due=not frozen, frozen=frozen,
            case=world.case or bool(case), burned=world.burned or verdict == Verdict.STOP_RESENDS), who)

    def _resend_answered(self, world: World, who: int, hand: Hand) -> World:
        if not self._holds(world, who, S.RECONCILING):
            return self._drop(world, who)
        finding = {
            "ok": Finding.RESEND_ACCEPTED, "pending": Finding.RESEND_ACCEPTED, "burned": Finding.RESEND_BURNED,
            "not_sent": Finding.RESEND_IN_USE,
        }.get(hand.saw, Finding.RESEND_UNKNOWN)
        return self._follow(world, who, hand, decide(Situation(finding=finding)))

    def _cancelling(self, world: World, who: int, hand: Hand) -> World:
        after = self._drop(world, who, due=world.due or hand.valid)
        if world.refund != "pending":
            return after
        return after._replace(refund="failed", effects=world.effects - 1)

    # --- what goes wrong ---

    def _faults(self, world: World, who: int) -> Iterator[Edge]:
        hand = world.hands[who]
        if hand.step == Step.IDLE:
            return
        mine = [m for m in world.wire if m.sender == who]
        orphaned = tuple(sorted(m._replace(sender=-1) if m.sender == who else m for m in world.wire))
        if hand.valid and not world.due:
            yield f"the lease of worker {who} runs out", world._replace(due=True)
        if not any(m.prompt for m in mine):
            dead = self._drop(world, who, due=world.due or hand.valid)
            yield f"worker {who} dies", dead._replace(wire=orphaned)
            if mine:
                waited = hand._replace(step=Step.ANSWERED, saw="unknown")
                yield f"worker {who} waits in vain", self._hand(world, who, waited, wire=orphaned)
        if hand.step == Step.AT_WIRE:
            turned_away = hand._replace(step=Step.ANSWERED, saw="not_sent")
            yield f"worker {who} is turned away", self._hand(world, who, turned_away)
        stalled = any(m.prompt for m in mine) or (hand.step == Step.AT_WIRE and world.since >= DEADLINE)
        if world.lock == who and (not stalled or "cut_off_in_a_stall" in self.lifted):
            yield f"worker {who} loses its lock", self._hand(world, who, hand._replace(cut_off=True), lock=-1)


_CLAIMED = {S.QUEUED.value: Step.JUDGE, S.READY.value: Step.CHECK, S.EXECUTING.value: Step.FOUND_EXECUTING}
_STEPS = {
    Step.JUDGE: Rules._judge, Step.JUDGED: Rules._judged, Step.CHECK: Rules._check, Step.CHECKED: Rules._checked,
    Step.LOCKED: Rules._locked, Step.UNLOCKED: Rules._unlocked, Step.SENDING: Rules._sending,
    Step.AT_WIRE: Rules._at_wire, Step.ANSWERED: Rules._answered, Step.FOUND_EXECUTING: Rules._found_executing,
    Step.ASK: Rules._ask, Step.ASKING: Rules._asking, Step.FOUND: Rules._found, Step.CANCELLING: Rules._cancelling,
}
