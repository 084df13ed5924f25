"""The door for what providers tell by themselves. It proves who it is by its signature; there is no session here."""

from __future__ import annotations

import logging
from uuid import UUID

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.request import UnreadablePostError
from django.views.decorators.csrf import csrf_exempt

from runtime_app import notices
from runtime_app.api import problems

log = logging.getLogger(__name__)
# The sender is told no more than this: which of it is wrong would help only somebody who tries.
_NOT_TAKEN = "This notice is not signed with a secret of this account, is too old, or cannot be read."


@csrf_exempt
def hook(request: HttpRequest, provider: str, account: UUID) -> HttpResponse:
    """200 once the notice is stored, also when it had come before; 503 when it should be sent again."""
    if request.method != "POST":
        answer = problems.plain(405)
        answer["Allow"] = "POST"
        return answer
    try:
        body = request.read(notices.BODY_MOST + 1)
    except UnreadablePostError:
        return problems.plain(400)
    if len(body) > notices.BODY_MOST:
        log.warning("notice refused: %s account %s: larger than %d bytes", provider, account, notices.BODY_MOST)
        return problems.plain(413)
    match notices.receive(provider, account, headers=request.headers, body=body):
        case notices.Taken(fresh=fresh):
            return JsonResponse({"received": True, "known": not fresh})
        case notices.NoSuchAccount():
            return problems.plain(404)
        case notices.NotReady():
            return problems.plain(503)
        case notices.NotTaken():
            return problems.respond(400, "notice_refused", _NOT_TAKEN)
