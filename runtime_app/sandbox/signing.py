"""How a notice is signed, rightly or wrongly."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from runtime_app.sandbox.courier import signature

_NOT_THE_SECRET = "whsec_of_somebody_else"
HOW = ("good", "bad_signature", "old_timestamp", "no_header", "other_secret")


@dataclass(frozen=True, slots=True)
class Signing:
    """`age`: how many seconds old the time in the header is; `secret`: instead of the account's."""

    how: str = "good"
    age: float = 0.0
    secret: str | None = None

    def dumped(self) -> str:
        return json.dumps(asdict(self))


def headers(signing: Signing, secret: str, now: float, body: bytes) -> dict[str, str]:
    """The headers of one attempt; the time is the sandbox's."""
    sent = {"content-type": "application/json; charset=utf-8", "user-agent": "Stripe/1.0 (sandbox)"}
    if signing.how == "no_header":
        return sent
    used = signing.secret or (_NOT_THE_SECRET if signing.how == "other_secret" else secret)
    value = signature(used, int(now - signing.age), body)
    if signing.how == "bad_signature":
        value = value[:-1] + ("0" if value[-1] != "0" else "1")
    return sent | {"stripe-signature": value}
