"""The order systems that exist, by name."""

from __future__ import annotations

from collections.abc import Callable

from runtime_app.adapters.orders.sandbox import SandboxOrders
from runtime_app.adapters.orders.types import OrderSystem


def _sandbox(base_url: str, connect_timeout: float) -> OrderSystem:
    return SandboxOrders(base_url, connect_timeout=connect_timeout)


ORDER_SYSTEMS: dict[str, Callable[[str, float], OrderSystem]] = {
    "sandbox": _sandbox,
}


def build(system: str, *, base_url: str, connect_timeout: float) -> OrderSystem:
    """An order system by its name; ValueError when there is none of this name."""
    make = ORDER_SYSTEMS.get(system)
    if make is None:
        raise ValueError(f"there is no order system {system!r}; there is {', '.join(sorted(ORDER_SYSTEMS))}")
    return make(base_url, connect_timeout)
