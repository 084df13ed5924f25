"""What the model is about: one refund, two workers, one provider, the people, and time in a few steps."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from runtime_app import states
from runtime_app.states import Status

# States are kept as plain text and numbers: an enum's hash is Python code, and millions of them are asked for.
FINAL, UNRESOLVED = frozenset(s.value for s in states.FINAL), frozenset(o.value for o in states.UNRESOLVED)
SUBMITTED = frozenset(s.value for s in states.SUBMITTED)
BEFORE_SUBMISSION = frozenset(s.value for s in states.BEFORE_SUBMISSION)
WAITING_FOR_PEOPLE = frozenset(s.value for s in states.WAITING_FOR_PEOPLE)
LEGAL = frozenset((a.value, b.value) for a, b in states.LEGAL)
OPERATION_LEGAL = frozenset((a.value, b.value) for a, b in states.OPERATION_LEGAL)

# How long ago the last send may have been: nobody whose lease and lock are in order sends after the deadline, and the
# provider no longer acts behind the horizon on anything that it took in time.
RECENT, DEADLINE, HORIZON = range(3)
# What the provider knows of keys: all, still all but too near the end of its promise for a resend, nothing.
REMEMBERED, ENDED, FORGOTTEN = range(3)


class Step(StrEnum):
    """Where a worker is with the task in its hand; between any two steps it may stall or die."""

    __hash__ = str.__hash__

    IDLE = "idle"
    JUDGE = "judge"  # claimed queued: the order is to be read
    JUDGED = "judged"
    CHECK = "check"  # claimed ready: order and authority are to be read again
    CHECKED = "checked"
    LOCKED = "locked"  # has the sender's lock, the intent is not committed
    UNLOCKED = "unlocked"  # only in a mutant: the intent is committed, the lock not taken
    FOUND_EXECUTING = "found_executing"
    ASK = "ask"  # claimed reconciling
    ASKING = "asking"  # the query is written down, and about to be made
    FOUND = "found"
    SENDING = "sending"  # the intent is committed; lease and lock are to be looked at once more
    AT_WIRE = "at_wire"  # looked, and about to send: a stall here is what the lock is for
    AWAITING = "awaiting"
    ANSWERED = "answered"
    CANCELLING = "cancelling"


class Hand(NamedTuple):
    step: Step = Step.IDLE
    valid: bool = False  # its guard still holds
    resend: bool = False
    cut_off: bool = False  # lost its lock without noticing
    wished: bool = False  # the cancel wish, as read at the claim
    saw: str = ""  # what it read last: facts, a finding or an answer
    since: int = 0  # the clock, as read when the query was written down
    counts: bool = False
    key: int = 0


class Message(NamedTuple):
    """A request on its way. `sender` is -1 when nobody waits for its answer any more."""

    sender: int
    key: int
    prompt: bool  # acted on or lost before its sender gives up (see LIMITS below)


class World(NamedTuple):
    status: str = Status.QUEUED.value
    due: bool = True
    hold: str = ""
    operation: str | None = None
    case: bool = False
    frozen: bool = False
    wished: bool = False
    asked_cancel: bool = False  # people ask once
    steady: bool = False  # the order does not change
    facts: int = 0  # its material facts; they change once
    approved: int = -1  # the facts that were shown to the approvers
    frozen_facts: int = -1  # the facts in the operation's frozen request
    since: int = RECENT
    counts: bool = False  # absent often enough, and old enough to mean something
    key: int = REMEMBERED
    resends: int = 0
    burned: bool = False
    lock: int = -1
    hands: tuple[Hand, Hand] = (Hand(), Hand())
    wire: tuple[Message, ...] = ()
    refund: str = ""  # succeeded | pending | failed at the provider
    effects: int = 0
    known: int = 0  # keys the provider remembers, as bits
    provider_burned: bool = False  # what it remembers is a server error
    stale: bool = False  # something was sent on facts that nobody approved
    faults: int = 0  # how many may still happen


class Broken(Exception):
    """A step that breaks a rule by itself, in words."""


@dataclass(frozen=True, slots=True)
class Provider:
    """How the provider behaves, and what it says of itself: that it replays answers, and for how long (`window`)."""

    name: str
    promises: bool
    window: bool
    remembers: bool
    answers: str = "settles"  # pends | refuses

    @property
    def lies(self) -> bool:
        return self.promises and self.window and not self.remembers


# What is not promised: two rare things at once, each of which the late watch shows afterwards as a case.
LIMITS = {
    "slow_after_a_stall": "a worker stalls before the wire past the horizon, and then its request is slow too",
    "cut_off_in_a_stall": "a worker stalls before the wire past its deadline, and loses its lock meanwhile",
    "liar_that_is_slow": "a provider breaks its promise to remember keys, and acts on a request long after it came",
    "stall_of_a_window": "a worker stalls before the wire until the provider has forgotten the key",
}

HELD = frozenset({Status.READY.value, Status.EXECUTING.value, Status.RECONCILING.value})
COMPLETED = Status.COMPLETED.value


def broken(world: World) -> str | None:
    """What is wrong with this state, in words; None when it is safe."""
    if world.effects > 1:
        return "two refunds of one operation"
    if world.status in FINAL and world.status != COMPLETED and world.effects:
        return f"a refund of a {world.status} task"
    if world.status == COMPLETED and world.effects != 1:
        return "completed without a refund"
    if (world.hold == "held") != (world.status in HELD) or (world.hold == "consumed") != (world.status == COMPLETED):
        return f"{world.status} with the hold {world.hold or 'none'}"
    if world.status in FINAL and world.operation in UNRESOLVED:
        return f"{world.status} with the operation {world.operation}"
    if world.stale:
        return "sent on facts that nobody approved"
    return None
