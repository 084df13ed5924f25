"""A client that goes away is forgotten at once."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

from django.core.asgi import get_asgi_application

from runtime_app.api.entrance import limited
from runtime_app.api.hub import hub
from tests.world import World


async def _come_and_go(path: str, key: str) -> list[int]:
    """How many clients the hub has: before, while one is there, and after it went."""
    gone, there = asyncio.Event(), asyncio.Event()
    requests = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> MutableMapping[str, Any]:
        request = next(requests, None)
        if request is None:
            await gone.wait()
        return request or {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        if b"id: " in message.get("body", b""):
            there.set()

    headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {key}".encode())]
    scope = {
        "type": "http", "http_version": "1.1", "method": "GET", "scheme": "http", "path": path,
        "raw_path": path.encode(), "query_string": b"", "headers": headers, "server": ("localhost", 80),
        "client": ("127.0.0.1", 1),
    }
    counts = [len(hub().watches)]
    request = asyncio.ensure_future(limited(get_asgi_application())(scope, receive, send))
    try:
        await asyncio.wait_for(there.wait(), 60)
        counts.append(len(hub().watches))
        gone.set()
        await asyncio.wait_for(request, 60)
        counts.append(len(hub().watches))
    finally:
        request.cancel()
        await hub().close()
    return counts


def test_a_client_that_goes_away_is_forgotten(world: World) -> None:
    """M19: nothing is kept for whoever is not there, and nobody has to notice it later."""
    task = world.ask("ORD-1")
    for path in (f"/api/v1/tasks/{task.id}/stream", "/api/v1/events/stream"):
        assert asyncio.run(_come_and_go(path, world.key)) == [0, 1, 0]
