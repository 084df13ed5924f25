"""An outside system that is real, but some of whose answers are bent on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from runtime_app import ids
from runtime_app.drain import Drain
from runtime_app.models import Task
from tests.world import World


class Bent:
    """`real`, except that each method named in `bends` is given the real one before the arguments of the call."""

    def __init__(self, real: Any, **bends: Callable[..., Any]) -> None:
        self._real, self._bends = real, bends

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._real, name)
        bend = self._bends.get(name)
        return real if bend is None else lambda *args, **kwargs: bend(real, *args, **kwargs)


def bend(
    world: World, *, payments: dict[str, Callable[..., Any]] | None = None,
    orders: dict[str, Callable[..., Any]] | None = None, effects: int = 4, batch: int = 20,
) -> Drain:
    """Let the world's worker meet bent answers from now on."""
    ports = world.ports()
    bent = Bent(ports.providers["stripe"], **(payments or {}))
    ports = replace(ports, providers={"stripe": bent}, orders=Bent(ports.orders, **(orders or {})))
    world.drain.close()
    world.drain = Drain(lane="default", worker="bent", ports=ports, batch=batch, effects=effects)
    return world.drain


def operation_of(task: Task) -> str:
    """The id that the task's operation will have, known before there is one."""
    return str(ids.operation_id(
        tenant=task.tenant.slug, workflow=task.workflow, request_key=task.request_key, effect="refund",
        ordinal=task.ordinal,
    ))
