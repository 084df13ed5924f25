"""How the provider behaves in a cell, and where a refund ends then, however often its workers are killed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.reliability.oracle import Asked
from tests.reliability.room import Room


@dataclass(frozen=True, slots=True)
class Mode:
    """One fault on the first send, or none, and `also` others; `forgetful` is a provider that ignores idempotency keys
    besides, `cancel` a wish to cancel that is uttered as soon as the outcome is in doubt. `told`: notices of the
    provider's are delivered; `hint`: one comes when all seems over; `twice`: it refunds twice by its own fault."""

    name: str
    ends: frozenset[str]
    fault: str | None = None
    how: Mapping[str, Any] = field(default_factory=dict)
    forgetful: bool = False
    cancel: bool = False
    also: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    told: bool = False
    hint: bool = False
    twice: bool = False

    def __str__(self) -> str:
        return f"{self.name}, forgetful" if self.forgetful else self.name

    def arm(self, room: Room, asked: Asked) -> None:
        match = {"payment_ref": asked.payment}
        if self.forgetful:
            room.sandbox.fault("F17", match=match)
        room.be_told(self.told)
        for fault, how in ((self.fault, self.how), *self.also):
            if fault is not None:
                room.sandbox.fault(fault, match=match, **how)


DONE, HUMAN = frozenset({"completed"}), frozenset({"reconciling"})
_FAULTS: tuple[tuple[str, str | None, dict[str, Any], frozenset[str], frozenset[str]], ...] = (
    # name, fault, its parameters, the end with a provider that keeps its keys, the end with one that forgets them
    ("ok", None, {}, DONE, DONE),
    ("answer lost after", "F4", {}, DONE, DONE),
    ("answer reset after", "F4", {"how": "reset"}, DONE, DONE),
    ("lost before", "F2", {}, DONE, DONE),
    ("slow past the timeout", "F5", {"seconds": 60}, DONE, DONE),
    ("answer cut short", "F6", {}, DONE, DONE),
    ("garbage after", "F7", {}, DONE, DONE),
    ("502 after", "F8", {"when": "after"}, DONE, DONE),
    ("502 before", "F8", {"when": "before"}, DONE, DONE),
    # The key replays its 500 for ever, so nothing may be sent again: a person takes over.
    ("500 before", "F10", {}, HUMAN, DONE),
    ("500 after", "F11", {}, DONE, DONE),
    ("429", "F12", {}, DONE, DONE),
    ("another amount", "F29", {}, HUMAN, HUMAN),
)
_CANCELLED = (
    Mode("cancelled, lost before", frozenset({"cancelled"}), "F2", cancel=True),
    Mode("cancelled too late", DONE | {"cancelled"}, "F4", cancel=True),
    Mode("cancelled at the provider", frozenset({"cancelled"}), "F22", cancel=True),
)
STOPPED = frozenset({"ready"})  # parked, with a person's case
_OTHERS = (
    Mode("its name lost", DONE, "F31"),
    Mode("its name and the answer lost", DONE, "F31", also=(("F4", {}),)),
    Mode("executed twice", DONE, "F32", hint=True, twice=True),
    Mode("refunded outside", STOPPED, "F33", {"amount_minor": 700}),
    Mode("the other mode", STOPPED, "F49", {"on": "payment", "times": None}),
    Mode("told before the answer", DONE, "F39", told=True),
    Mode("told before the answer, which is lost", DONE, "F39", told=True, also=(("F4", {}),)),
)
MODES = tuple(
    Mode(name, ends if not forgetful else forgetful_ends, fault, how, forgetful)
    for name, fault, how, ends, forgetful_ends in _FAULTS
    for forgetful in (False, True)
) + _CANCELLED + _OTHERS
