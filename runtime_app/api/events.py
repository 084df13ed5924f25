"""The two event streams. Reading events page by page is among the parts of a task."""

from __future__ import annotations

from typing import Annotated, Any

from django.http import HttpRequest, StreamingHttpResponse
from ninja import Router
from ninja.params.functions import Header
from pydantic import Field

from runtime_app.api import queries, streams
from runtime_app.api.keys import StreamKey, account, principal, signed_in
from runtime_app.api.refusals import STREAMS

router = Router(tags=["event streams"])

LastEventId = Annotated[
    str | None, Header(alias="Last-Event-ID", description="Where the client was; it goes before `after`.")
]
AfterNumber = Annotated[str | None, Field(description="Only events with a greater `seq`.")]
AfterCursor = Annotated[
    str | None, Field(description="The id of the last event seen; `0` for everything; left out: from now on.")
]
_STREAM: dict[str, Any] = {
    "responses": {
        200: {
            "description": "Server-sent events: `id` resumes exactly, `data` is an event as in the paged call.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    }
}


@router.get(
    "/tasks/{task_id}/stream", auth=[StreamKey(), signed_in], response={200: None, **STREAMS}, openapi_extra=_STREAM,
    summary="Follow a task's events",
)
async def stream_task(
    request: HttpRequest, task_id: str, after: AfterNumber = None, last_event_id: LastEventId = None
) -> StreamingHttpResponse:
    """All events of the task from the first one, or from where the client was, and then as they happen."""
    queries.only(request, "after")
    seen, field = (last_event_id, "Last-Event-ID") if last_event_id is not None else (after, "after")
    who = principal(request)
    session_key = request.session.session_key if who is getattr(request, "user", None) else None
    return await streams.of_task(who, task_id, after=seen, field=field, session_key=session_key)


@router.get(
    "/events/stream", auth=StreamKey(), response={200: None, **STREAMS}, openapi_extra=_STREAM,
    summary="Follow a tenant's events",
)
async def stream_tenant(
    request: HttpRequest, after: AfterCursor = None, last_event_id: LastEventId = None
) -> StreamingHttpResponse:
    """Every event of the tenant. Events of one task come in their order; of different tasks, in an order that all
    readers see alike. An event may come a moment late, never too late: a transaction that is still open holds it back.
    """
    queries.only(request, "after")
    seen, field = (last_event_id, "Last-Event-ID") if last_event_id is not None else (after, "after")
    return await streams.of_tenant(account(request), after=seen, field=field)
