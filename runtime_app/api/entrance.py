"""The ASGI door before Django: it takes no more of a request's body than the API or a hook would read."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from django.conf import settings

from runtime_app.api import problems

log = logging.getLogger(__name__)
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Any, Any, Any], Awaitable[None]]

# Read and thrown away before a refusal, so that a client which sends first and reads then gets to read it.
PATIENCE = 8 * 1024 * 1024
GUARDED = ("/api/", "/hooks/")


def limited(app: App) -> App:
    """Django puts a body of any size on disk before a view can refuse it; this refuses it first, with 413."""

    async def entrance(scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(GUARDED):
            await app(scope, receive, send)
            return
        messages, length = [], 0
        more = True
        while more:
            message = await receive()
            if message["type"] != "http.request":  # the client is gone
                messages.append(message)
                break
            length += len(message.get("body", b""))
            more = message.get("more_body", False)
            if length <= settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
                messages.append(message)
            elif length > PATIENCE:
                break
        if length > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            log.warning("refused a body that is too large: %.200r", scope["path"])
            await _refuse(send)
            return
        read = iter(messages)

        async def again() -> Message:
            return next(read, None) or await receive()

        await app(scope, again, send)

    return entrance


async def _refuse(send: Send) -> None:
    answer = problems.plain(413)
    headers = [(name.lower().encode(), value.encode()) for name, value in answer.items()]
    headers += [(b"content-length", str(len(answer.content)).encode()), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": answer.content})
