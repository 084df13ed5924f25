"""Messages to receivers outside, signed as Standard Webhooks say: https://www.standardwebhooks.com."""

from __future__ import annotations

from datetime import UTC, datetime

from standardwebhooks import Webhook

from runtime_app.adapters.wire import exchange
from runtime_app.addresses import unreachable
from runtime_app.points import point

ANSWER_MOST = 64 * 1024


def post(url: str, secret: str, id: str, body: bytes, *, connect: float, read: float, inside: bool) -> str | None:
    """Deliver once; None when the receiver took it, else what went wrong, as a sentence.

    `id` is the same at every try, so that the receiver can tell a repetition; the signature is of this moment of the
    machine's clock, since the receiver holds it against its own. Without `inside` nothing in our own network is ever
    connected to, whatever a name leads to. Redirects are not followed, and little of the answer is read.
    """
    if (problem := unreachable(url, inside=inside)) is not None:
        return problem
    now = datetime.now(UTC)
    headers = {
        "content-type": "application/json", "user-agent": "Countersign", "webhook-id": id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(secret).sign(msg_id=id, timestamp=now, data=body.decode()),
    }
    point("hook.post.before")
    seen = exchange(
        "POST", url, headers=headers, body=body, connect=connect, read=read, cut_at=ANSWER_MOST, public=not inside
    )
    point("hook.post.after")
    if seen.status is None:
        return f"There was no answer: {seen.cause.rpartition(' < ')[2]}."
    if 300 <= seen.status < 400:
        return f"It answered {seen.status}; redirects are not followed."
    return None if 200 <= seen.status < 300 else f"It answered {seen.status}."
