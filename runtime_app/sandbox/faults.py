"""Faults that wait for a request, a notice or a statement: arming them, and which one the next request meets."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from runtime_app.sandbox.clock import Clock
from runtime_app.sandbox.fault_kinds import MATCHES, VERBS, Fault
from runtime_app.sandbox.fault_table import FAULTS

_AT_ONCE = ("port", "now")  # they act when they are asked for, and wait for nothing
_LATER = ("line", "day")  # they meet what a statement holds, not the request for it


class Unusable(Exception):
    """The control plane was asked for something it does not do; the text is the sentence to answer."""


@dataclass(slots=True)
class Call:
    """What a request is about, as far as its path, query and body say."""

    verb: str
    facts: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Armed:
    """One fault that waits. `left` is how many more requests it meets; None is any number."""

    id: int
    fault: Fault
    on: tuple[str, ...]
    match: dict[str, str]
    values: dict[str, Any]
    left: int | None
    until: float | None = None

    def meets(self, call: Call) -> bool:
        return call.verb in self.on and self.fits(call.facts)

    def fits(self, facts: Mapping[str, str | None]) -> bool:
        return all(facts.get(name) == value for name, value in self.match.items())

    def told(self) -> dict[str, Any]:
        return {"id": self.id, "fault": self.fault.code, "on": list(self.on), "match": self.match,
                "times_left": self.left, **self.values}


class FaultBoard:
    """The armed faults, in the order they were asked for. They are forgotten when the sandbox restarts."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._armed: list[Armed] = []
        self._ids = itertools.count(1)

    def arm(self, asked: Mapping[str, Any]) -> Armed:
        """Check what was asked and arm it; raises Unusable with a sentence."""
        code = asked.get("fault")
        fault = FAULTS.get(code) if isinstance(code, str) else None
        if fault is None:
            raise Unusable(f"There is no fault {code!r}; GET /_sandbox lists those that exist.")
        known = {"fault", "times", "match"} | set(fault.params)
        if fault.layer not in _AT_ONCE:
            known.add("on")
        if unknown := sorted(set(asked) - known):
            raise Unusable(f"{fault.code} does not take {', '.join(map(repr, unknown))}; it takes {sorted(known)}.")
        try:
            values = {name: param.check(name, asked.get(name, param.default)) for name, param in fault.params.items()}
        except ValueError as error:
            raise Unusable(str(error)) from None
        on, match, times = _on(fault, asked, values), _match(fault, asked), _times(fault, asked)
        armed = Armed(next(self._ids), fault, on, match, values, times)
        if fault.lasts and isinstance(values.get("seconds"), int | float):
            armed.until = self._clock.now() + values["seconds"]
        if fault.layer not in _AT_ONCE:
            self._armed.append(armed)
        return armed

    def meet(self, call: Call) -> dict[str, Armed]:
        """The first fault of each layer that meets this request; each is counted down."""
        if not self._armed:
            return {}
        self._armed = self.armed()
        met: dict[str, Armed] = {}
        for armed in self._armed:
            layer = armed.fault.layer
            if layer not in met and layer not in _LATER and armed.meets(call):
                met[layer] = armed
                _count(armed)
        return met

    def take(self, layer: str, meets: Callable[[Armed], bool]) -> list[Armed]:
        """Every fault of this layer for which `meets` is true; each is counted down."""
        taken = [a for a in self.armed() if a.fault.layer == layer and meets(a)]
        for armed in taken:
            _count(armed)
        return taken

    def clear(self, number: int | None = None) -> int:
        """Disarm the one with this number, or all; says how many there were."""
        waiting = self.armed()
        self._armed = [a for a in waiting if number is not None and a.id != number]
        return len(waiting) - len(self._armed)

    def armed(self) -> list[Armed]:
        now = self._clock.now()
        return [a for a in self._armed if a.left != 0 and (a.until is None or now < a.until)]


def _count(armed: Armed) -> None:
    if armed.left is not None:
        armed.left -= 1


def _on(fault: Fault, asked: Mapping[str, Any], values: Mapping[str, Any]) -> tuple[str, ...]:
    on, only = asked.get("on"), fault.only
    if fault.on_by:
        only = fault.on_by[values["what"]]
    if on is None:
        return only if fault.on_by else fault.on
    wanted = [on] if isinstance(on, str) else on
    if not isinstance(wanted, list) or not wanted or not all(isinstance(v, str) and v in VERBS for v in wanted):
        raise Unusable(f"`on` takes one or several of {sorted(VERBS)}.")
    chosen = tuple(dict.fromkeys(itertools.chain.from_iterable(VERBS[v] for v in wanted)))
    if only and not set(chosen) <= set(only):
        raise Unusable(f"{fault.code} can only happen on {', '.join(only)}.")
    return chosen


def _match(fault: Fault, asked: Mapping[str, Any]) -> dict[str, str]:
    match = asked.get("match", {})
    if not isinstance(match, dict) or not all(isinstance(v, str) for v in match.values()):
        raise Unusable("`match` is an object of names and texts.")
    if unknown := sorted(set(match) - set(MATCHES)):
        raise Unusable(f"`match` does not know {', '.join(map(repr, unknown))}; it knows {', '.join(MATCHES)}.")
    if foreign := sorted(set(match) - set(fault.matches)):
        raise Unusable(f"{fault.code} cannot be scoped by {', '.join(foreign)}, only by {', '.join(fault.matches)}.")
    if fault.layer == "port" and match:
        raise Unusable(f"{fault.code} closes the whole port, for everybody; it takes no `match`.")
    return dict(match)


def _times(fault: Fault, asked: Mapping[str, Any]) -> int | None:
    times = asked.get("times", fault.times)
    if times is not None and (type(times) is not int or not 1 <= times <= 1_000_000):
        raise Unusable("`times` is a whole number from 1, or null for as long as the fault stands.")
    return times
