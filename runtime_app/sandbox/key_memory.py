"""What the provider remembers of idempotency keys: the first answer, whatever it was, for a day."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from runtime_app.sandbox.clock import Clock
from runtime_app.sandbox.http11 import Reply, Request
from runtime_app.sandbox.queued import Queued
from runtime_app.sandbox.store import Store
from runtime_app.sandbox.wire import error_reply

WINDOW = 24 * 3600.0
KEY_MOST = 255
REPLAYED = "idempotent-replayed"


class KeyMemory:
    def __init__(self, store: Store, clock: Clock, queued: Queued) -> None:
        self._queued = queued
        self._store = store
        self._clock = clock
        self.running: set[str] = set()

    def forget(self, key: str) -> None:
        self._store.run("DELETE FROM keys WHERE key = ?", key)

    def in_use(self, key: str) -> bool:
        return key in self.running or self._queued.holds(key)

    def through(
        self, request: Request, carry_out: Callable[[], tuple[Reply, bool]], *, remember_errors: bool = True
    ) -> Reply:
        """Replay the key's first answer, or carry the request out and remember what it answered.

        `carry_out` also says whether the request got as far as being executed: a request that failed validation is
        not remembered, as at the real provider.
        """
        key = request.headers.get("idempotency-key", "")
        if not key:
            return carry_out()[0]
        if len(key) > KEY_MOST:
            return error_reply(400, "invalid_request_error", f"A key has at most {KEY_MOST} characters.")
        if self.in_use(key):
            return in_use_reply()
        fingerprint = hashlib.sha256(f"{request.method} {request.path}\0".encode() + request.body).hexdigest()
        known = self._store.one("SELECT * FROM keys WHERE key = ?", key)
        if known is not None and known["created"] > self._clock.now() - WINDOW:
            if known["fingerprint"] != fingerprint:
                return other_body_reply(key)
            return Reply(known["status"], known["body"], {REPLAYED: "true", "original-request": "req_first"})
        with self._store.together():
            reply, executed = carry_out()
            if executed and (remember_errors or reply.status < 400):
                self._store.run(
                    "INSERT OR REPLACE INTO keys (key, fingerprint, status, body, created) VALUES (?, ?, ?, ?, ?)",
                    key, fingerprint, reply.status, reply.body, self._clock.now(),
                )
        return reply


def in_use_reply(code: str = "idempotency_key_in_use") -> Reply:
    return error_reply(
        409, "idempotency_error" if code == "idempotency_key_in_use" else "invalid_request_error",
        "There is currently another in-progress request using this Idempotent Key (that probably means you submitted "
        "twice, and the other request is still going through)." if code == "idempotency_key_in_use" else
        "This object cannot be accessed right now because another request is changing it.", code=code,
    )


def other_body_reply(key: str) -> Reply:
    return error_reply(
        400, "idempotency_error", "Keys for idempotent requests can only be used with the same parameters they were "
        f"first used with. Try using a key other than '{key}' if you meant to execute a different request.",
    )
