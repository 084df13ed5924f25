"""Breadth-first search over everything that may happen, with the shortest story of what went wrong."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from tests.model.protocol import Protocol, Rules
from tests.model.world import ENDED, FINAL, REMEMBERED, WAITING_FOR_PEOPLE, Broken, Provider, World, broken

State = TypeVar("State", bound=tuple[Any, ...])


@dataclass(slots=True)
class Searched(Generic[State]):
    """`why` is what was broken first, None when nothing was; `story` the shortest way to it."""

    states: int
    edges: int
    why: str | None = None
    story: list[str] = field(default_factory=list)
    stuck: State | None = None  # from here nothing good can be reached without a fault


def search(
    protocol: Protocol, provider: Provider, first: World, *, lifted: frozenset[str] = frozenset(), live: bool = False,
) -> Searched[World]:
    """Look at every state that `first` may become; `live` also asks whether each can come to an end without a fault."""
    rules = Rules(protocol, provider, lifted)
    first = first._replace(key=REMEMBERED if provider.window else ENDED)
    return explore(first, rules.edges, broken, alike=_canonical, good=_seen_or_ended if live else None)


def explore(
    first: State, edges_of: Callable[[State], Iterable[tuple[str, State]]], wrong: Callable[[State], str | None], *,
    alike: Callable[[State], State], good: Callable[[State], bool] | None = None, most: int = 2_000_000,
) -> Searched[State]:
    """Look at every state that `first` may become. With `good`, one from which no good state can be reached without a
    fault is `stuck`; a state says by its `faults` how many may still happen."""
    came: dict[State, tuple[State, str] | None] = {first: None}
    back: dict[State, list[State]] = {}
    todo = deque([first])
    edges = 0
    while todo:
        state = todo.popleft()
        try:
            for what, after in edges_of(state):
                edges += 1
                after = alike(after)
                if good is not None and after.faults == state.faults:  # type: ignore[attr-defined]
                    back.setdefault(after, []).append(state)
                if after in came:
                    continue
                came[after] = (state, what)
                if (why := wrong(after)) is not None:
                    return Searched(len(came), edges, why, _story(came, after))
                todo.append(after)
        except Broken as broke:
            return Searched(len(came), edges, str(broke), _story(came, state))
        if len(came) > most:
            raise RuntimeError(f"more than {most} states")
    return Searched(len(came), edges, stuck=None if good is None else _stuck(came, back, good))


def _canonical(world: World) -> World:
    """The two workers are alike: of two states that differ only in who is who, one is kept."""
    left, right = world.hands
    if left <= right:
        return world
    wire = tuple(sorted(m._replace(sender=1 - m.sender) if m.sender >= 0 else m for m in world.wire))
    return world._replace(hands=(right, left), lock=1 - world.lock if world.lock >= 0 else -1, wire=wire)


def _seen_or_ended(world: World) -> bool:
    """Somebody has ended it or gets to see it."""
    return world.status in FINAL or world.status in WAITING_FOR_PEOPLE or world.case


def _story(came: dict[State, tuple[State, str] | None], last: State) -> list[str]:
    story, at = [], came[last]
    while at is not None:
        story.append(at[1])
        at = came[at[0]]
    return story[::-1]


def _stuck(
    came: dict[State, tuple[State, str] | None], back: dict[State, list[State]], good: Callable[[State], bool]
) -> State | None:
    reached = {state for state in came if good(state)}
    todo = deque(reached)
    while todo:
        for before in back.get(todo.popleft(), ()):
            if before not in reached:
                reached.add(before)
                todo.append(before)
    return next((state for state in came if state not in reached), None)
