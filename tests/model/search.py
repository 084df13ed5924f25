"""Breadth-first search over everything that may happen, with the shortest story of what went wrong."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from tests.model.protocol import Protocol, Rules
from tests.model.world import ENDED, FINAL, REMEMBERED, WAITING_FOR_PEOPLE, Broken, Provider, World, broken


@dataclass(slots=True)
class Searched:
    """`why` is what was broken first, None when nothing was; `story` the shortest way to it."""

    states: int
    edges: int
    why: str | None = None
    story: list[str] = field(default_factory=list)
    stuck: World | None = None  # from here no end and no person can be reached without a fault


def search(
    protocol: Protocol, provider: Provider, first: World, *, lifted: frozenset[str] = frozenset(), live: bool = False,
    most: int = 2_000_000,
) -> Searched:
    """Look at every state that `first` may become; `live` also asks whether each can come to an end without a fault."""
    rules = Rules(protocol, provider, lifted)
    first = first._replace(key=REMEMBERED if provider.window else ENDED)
    came: dict[World, tuple[World, str] | None] = {first: None}
    back: dict[World, list[World]] = {}
    todo = deque([first])
    edges = 0
    while todo:
        world = todo.popleft()
        try:
            for what, after in rules.edges(world):
                edges += 1
                after = _canonical(after)
                if live and after.faults == world.faults:
                    back.setdefault(after, []).append(world)
                if after in came:
                    continue
                came[after] = (world, what)
                if (why := broken(after)) is not None:
                    return Searched(len(came), edges, why, _story(came, after))
                todo.append(after)
        except Broken as wrong:
            return Searched(len(came), edges, str(wrong), _story(came, world))
        if len(came) > most:
            raise RuntimeError(f"more than {most} states")
    return Searched(len(came), edges, stuck=_stuck(came, back) if live else None)


def _canonical(world: World) -> World:
    """The two workers are alike: of two states that differ only in who is who, one is kept."""
    left, right = world.hands
    if left <= right:
        return world
    wire = tuple(sorted(m._replace(sender=1 - m.sender) if m.sender >= 0 else m for m in world.wire))
    return world._replace(hands=(right, left), lock=1 - world.lock if world.lock >= 0 else -1, wire=wire)


def _story(came: dict[World, tuple[World, str] | None], last: World) -> list[str]:
    story, at = [], came[last]
    while at is not None:
        story.append(at[1])
        at = came[at[0]]
    return story[::-1]


def _stuck(came: dict[World, tuple[World, str] | None], back: dict[World, list[World]]) -> World | None:
    """A state from which nobody ever ends it or gets to see it, if there is one."""
    good = {w for w in came if w.status in FINAL or w.status in WAITING_FOR_PEOPLE or w.case}
    todo = deque(good)
    while todo:
        for before in back.get(todo.popleft(), ()):
            if before not in good:
                good.add(before)
                todo.append(before)
    return next((world for world in came if world not in good), None)
