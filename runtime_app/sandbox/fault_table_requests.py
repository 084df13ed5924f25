"""The faults of the requests that move or look for money, by number."""

from __future__ import annotations

from runtime_app.sandbox.fault_kinds import ORDER_SYSTEM, PROVIDER, QUERIES, Fault, Param

_HOW = Param("close", "text", "close the connection in order, or reset it", ("close", "reset"))
_LONG = Param(3600, "seconds", "how long the connection is held without a byte")


def _when(default: str) -> Param:
    return Param(default, "text", "whether the request was carried out first", ("before", "after"))


REQUESTS = (
    Fault("F1", "New connections to the provider's port are refused and open ones are closed, for `seconds` or until"
          " the faults are cleared. The order system is on the same port; the control port stays open.",
          layer="port", on=PROVIDER + ORDER_SYSTEM, times=None,
          params={"seconds": Param(None, "seconds", "real seconds; null until cleared")}),
    Fault("F2", "The request is read and the connection ends; nothing was done.", params={"how": _HOW}),
    Fault("F3", "The request is read and nothing answers for `seconds`; then the connection closes. Nothing was done.",
          params={"seconds": _LONG}),
    Fault("F4", "The request is carried out, and the connection ends without an answer.", params={"how": _HOW}),
    Fault("F5", "The request is carried out (after `commit_after` seconds, holding its key) and answered only after"
          " `seconds` more.",
          params={"seconds": _LONG, "commit_after": Param(0, "seconds", "before it is carried out")}),
    Fault("F6", "The answer breaks off in the middle of its body.", params={"when": _when("after")}),
    Fault("F7", "A 200 whose body is not what was promised.",
          params={"when": _when("after"), "body": Param("{\"id\": \"re_", "text", "the body to send")}),
    Fault("F8", "An HTML error page of something in front of the provider.",
          params={"when": _when("after"), "status": Param(502, "text", "its status", (502, 503, 504))}),
    Fault("F9", "The answer is right; the kept-alive connection is then closed without a word after `seconds` idle.",
          params={"seconds": Param(0, "seconds", "idle time before it closes")}),
    Fault("F10", "500 before anything was done; the key remembers the 500 and replays it."),
    Fault("F11", "The request is carried out and answered 500; the key remembers the 500 and replays it."),
    Fault("F12", "429 before anything was looked at.", on=("create",),
          params={"retry_after": Param(1, "seconds", "the Retry-After header; null leaves it out", optional=True)}),
    Fault("F13", "409: a request with this key is said to be running. Nothing was done.",
          params={"code": Param("idempotency_key_in_use", "text", "the error's code",
                                ("idempotency_key_in_use", "lock_timeout"))}),
    Fault("F14", "The answer claims to be a replay of the key (`Idempotent-Replayed: true`), or a real replay does not"
          " say so.", params={"header": Param("present", "text", "what becomes of the header", ("present", "absent"))}),
    Fault("F15", "400 idempotency_error, as if the key had been used with another body.",
          params={"when": _when("before")}),
    Fault("F16", "The key is forgotten before the request is looked at, so that a resend is carried out anew.",
          layer="key", only=("create", "cancel"), times=None),
    Fault("F17", "Keys are ignored, or only successes are remembered.", layer="key", only=("create", "cancel"),
          times=None, params={"mode": Param("ignored", "text", "what is not remembered", ("ignored", "success_only"))}),
    Fault("F18", "The API key is refused.", params={"status": Param(401, "text", "its status", (401, 403))}),
    Fault("F19", "The refund is refused for its amount.", only=("create",), params={
        "when": _when("before"),
        "code": Param("charge_already_refunded", "text", "which refusal",
                      ("charge_already_refunded", "amount_too_large"))}),
    Fault("F20", "The request is queued inside the provider and carried out `seconds` of the sandbox's clock later,"
          " whatever happens meanwhile; the answer is lost.", only=("create",), params={
              "seconds": Param(600, "seconds", "sandbox seconds until it is carried out"), "how": _HOW,
              "holds_key": Param(False, "flag", "a resend meanwhile is told 409 instead of being carried out")}),
    Fault("F21", "The refund is accepted as pending and becomes `then` after `seconds` of the sandbox's clock (0: at"
          " once; null: when told by PATCH /_sandbox/refunds/{id}).", layer="data", only=("create",), params={
              "seconds": Param(None, "seconds", "sandbox seconds until then"),
              "then": Param("succeeded", "text", "what it becomes", ("succeeded", "failed", "canceled")),
              "failure_reason": Param("lost_or_stolen_card", "text", "why it failed")}),
    Fault("F22", "The refund is accepted as requires_action, which can be cancelled.", layer="data", only=("create",),
          params={"seconds": Param(None, "seconds", "sandbox seconds until then"),
                  "then": Param("succeeded", "text", "what it becomes", ("succeeded", "failed", "canceled"))}),
    Fault("F23", "The refund succeeds and turns into failed after `seconds` of the sandbox's clock: the money came"
          " back.", layer="data", only=("create",),
          params={"seconds": Param(86400, "seconds", "sandbox seconds until it comes back")}),
    Fault("F24", "The refund stays pending for want of balance, until told by PATCH /_sandbox/refunds/{id}.",
          layer="data", only=("create",)),
    Fault("F25", "The list does not show refunds younger than `seconds` of the sandbox's clock.", layer="data",
          on=("list",), only=("list",), times=None, params={"seconds": Param(60, "seconds", "how far it lags")}),
    Fault("F26", "The list says that there is no more, or leaves its newest entry out.", layer="data", on=("list",),
          only=("list",), params={"lie": Param("has_more", "text", "what is wrong", ("has_more", "lost_entry"))}),
    Fault("F27", "Queries answer 500.", on=QUERIES, only=(*QUERIES, "statement", "events")),
    Fault("F28", "404 for a thing that exists.", on=("retrieve",), only=QUERIES),
    Fault("F29", "The refund is made with another amount or currency than asked for.", layer="data", only=("create",),
          params={"amount_minor": Param(None, "minor", "the amount made; null: one less (or one more than 1)"),
                  "currency": Param(None, "text", "the currency written down; null: the right one")}),
    Fault("F30", "The refund is made on another payment.", layer="data", only=("create",),
          params={"payment_ref": Param("", "text", "the payment that is refunded instead")}),
    Fault("F31", "The refund is made, and its metadata is lost.", layer="data", only=("create",)),
    Fault("F32", "The request is carried out twice under one key.", only=("create",)),
    Fault("F33", "Somebody refunds `amount_minor` of match.payment_ref in the provider's dashboard, now.",
          layer="now", on=(),
          params={"amount_minor": Param(None, "minor", "how much; null: all that is left")}),
    Fault("F50", "The whole provider is away for `seconds` of the sandbox's clock: every request meets it.",
          on=PROVIDER, times=None, lasts=True, params={
              "seconds": Param(60, "seconds", "sandbox seconds until it is back"),
              "how": Param("close", "text", "how it is away", ("close", "reset", "hang", "503"))}),
)
