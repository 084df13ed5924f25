"""The faults of the answer layer: each takes the way to carry the request out, and says what happens on the wire."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from runtime_app.sandbox.deliveries import Delivery
from runtime_app.sandbox.http11 import Reply
from runtime_app.sandbox.key_memory import REPLAYED, in_use_reply, other_body_reply
from runtime_app.sandbox.ledger import Refused
from runtime_app.sandbox.wire import error_reply, missing, refused_reply, server_error

Values = dict[str, Any]


class Work(Protocol):
    """A request on its way. `run` goes through sign-in and key memory; `execute` is the bare deed inside."""

    @property
    def key(self) -> str: ...

    def run(self, instead: Callable[[], Reply] | None = None) -> Reply: ...

    def execute(self) -> Reply: ...

    def hold_key(self) -> None: ...

    def let_key_go(self) -> None: ...

    def lock_payment(self) -> None: ...

    def unlock_payment(self) -> None: ...

    def queue(self, seconds: float, holds_key: bool) -> None: ...


def _perhaps(work: Work, values: Values) -> None:
    if values["when"] == "after":
        work.run()


def _lost_before(work: Work, values: Values) -> Delivery:
    return Delivery(how=values["how"])


def _hang_before(work: Work, values: Values) -> Delivery:
    return Delivery(how="hang", after=values["seconds"])


def _lost_after(work: Work, values: Values) -> Delivery:
    work.run()
    return Delivery(how=values["how"])


def _slow(work: Work, values: Values) -> Delivery:
    def commit() -> Delivery:
        work.let_key_go()
        return Delivery(reply=work.run(), after=values["seconds"])

    if not values["commit_after"]:
        return commit()
    work.hold_key()
    return Delivery(how="hang", after=values["commit_after"], later=commit)


def _truncated(work: Work, values: Values) -> Delivery:
    reply = work.run() if values["when"] == "after" else Reply(200, b'{"id": "re_0", "object": "refund", "amount": 1}')
    return Delivery(how="truncate", reply=reply)


def _garbage(work: Work, values: Values) -> Delivery:
    _perhaps(work, values)
    return Delivery(reply=Reply(200, values["body"].encode("utf-8", "replace")))


def _html(work: Work, values: Values) -> Delivery:
    _perhaps(work, values)
    page = f"<html><head><title>{values['status']}</title></head><body><h1>Bad day at the edge</h1></body></html>"
    return Delivery(reply=Reply(values["status"], page.encode(), content_type="text/html"))


def _idle_close(work: Work, values: Values) -> Delivery:
    return Delivery(how="send_then_close", reply=work.run(), linger=values["seconds"])


def _error_before(work: Work, values: Values) -> Delivery:
    return Delivery(reply=work.run(server_error))


def _error_after(work: Work, values: Values) -> Delivery:
    def deed() -> Reply:
        work.execute()
        return server_error()

    return Delivery(reply=work.run(deed))


def _throttled(work: Work, values: Values) -> Delivery:
    reply = error_reply(429, "invalid_request_error", "Too many requests hit the API too quickly.", code="rate_limit")
    if values["retry_after"] is not None:
        reply.headers["retry-after"] = f"{values['retry_after']:g}"
    return Delivery(reply=reply)


def _key_in_use(work: Work, values: Values) -> Delivery:
    return Delivery(reply=in_use_reply(values["code"]))


def _replay_header(work: Work, values: Values) -> Delivery:
    reply = work.run()
    reply.headers.pop(REPLAYED, None)
    if values["header"] == "present":
        reply.headers[REPLAYED] = "true"
    return Delivery(reply=reply)


def _other_body(work: Work, values: Values) -> Delivery:
    _perhaps(work, values)
    return Delivery(reply=other_body_reply(work.key))


def _key_refused(work: Work, values: Values) -> Delivery:
    if values["status"] == 401:
        reply = error_reply(401, "invalid_request_error", "Expired API Key provided.", code="api_key_expired")
    else:
        reply = error_reply(403, "invalid_request_error", "The key has no access to this resource.")
    return Delivery(reply=reply)


def _amount_refused(work: Work, values: Values) -> Delivery:
    sentence = ("Charge has already been refunded." if values["code"] == "charge_already_refunded" else
                "Refund amount is greater than unrefunded amount on charge")

    def deed() -> Reply:
        if values["when"] == "after":
            work.execute()
        return refused_reply(Refused(values["code"], sentence))

    return Delivery(reply=work.run(deed))


def _queued(work: Work, values: Values) -> Delivery:
    work.queue(values["seconds"], values["holds_key"])
    return Delivery(how=values["how"])


def _query_error(work: Work, values: Values) -> Delivery:
    return Delivery(reply=server_error())


def _gone(work: Work, values: Values) -> Delivery:
    return Delivery(reply=missing("object", "gone", "id"))


def _twice(work: Work, values: Values) -> Delivery:
    def deed() -> Reply:
        work.execute()
        return work.execute()

    return Delivery(reply=work.run(deed))


def _beside_others(work: Work, values: Values) -> Delivery:
    locks = values["meanwhile"] == "lock_timeout"

    def commit() -> Delivery:
        work.let_key_go()
        if locks:
            work.unlock_payment()
        return Delivery(reply=work.run())

    work.hold_key()
    if locks:
        work.lock_payment()
    return Delivery(how="hang", after=max(values["seconds"], 0.001), later=commit)


def _outage(work: Work, values: Values) -> Delivery:
    if values["how"] == "503":
        return Delivery(reply=Reply(503, b"<html><body>Service Unavailable</body></html>", content_type="text/html"))
    return Delivery(how=values["how"], after=3600 if values["how"] == "hang" else 0)


ANSWERS: dict[str, Callable[[Work, Values], Delivery]] = {
    "F2": _lost_before, "F3": _hang_before, "F4": _lost_after, "F5": _slow, "F6": _truncated, "F7": _garbage,
    "F8": _html, "F9": _idle_close, "F10": _error_before, "F11": _error_after, "F12": _throttled, "F13": _key_in_use,
    "F14": _replay_header, "F15": _other_body, "F18": _key_refused, "F19": _amount_refused, "F20": _queued,
    "F27": _query_error, "F28": _gone, "F32": _twice, "F35": _beside_others, "F50": _outage,
}
