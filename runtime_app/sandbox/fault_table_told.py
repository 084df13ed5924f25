"""The faults of what the provider tells by itself or in a statement, of disputes, and of mixed-up accounts."""

from __future__ import annotations

from runtime_app.sandbox.fault_kinds import Fault, Param

_NOTICE = ("notice",)
_STATEMENT = ("statement",)
_LIVEMODE, _ACCOUNT = ("payment", "events", "notice"), ("list", "statement", "events")

TOLD = (
    Fault("F34", "The customer disputes `amount_minor` of match.payment_ref, now: that much of it cannot be refunded"
          " any more, and the money leaves the account. The order system does not know.", layer="now", on=(),
          params={"amount_minor": Param(None, "minor", "how much; null: all that is left")}),
    Fault("F35", "The create runs for `seconds`. Another create of the same payment that comes meanwhile is told 409"
          " lock_timeout, or runs beside it.", only=("create",), params={
              "seconds": Param(2, "seconds", "real seconds until it is carried out"),
              "meanwhile": Param("lock_timeout", "text", "what happens to the others", ("lock_timeout", "both"))}),
    Fault("F36", "The notices of one change of a refund are never delivered.", layer="notice", on=_NOTICE,
          only=_NOTICE),
    Fault("F37", "The notices of one change of a refund are delivered `copies` times.", layer="notice", on=_NOTICE,
          only=_NOTICE, params={"copies": Param(2, "count", "how many times in all")}),
    Fault("F38", "The notices of one change of a refund are held back until the next notice of the same refund was"
          " sent, or `seconds` of the sandbox's clock have passed.", layer="notice", on=_NOTICE, only=_NOTICE,
          params={"seconds": Param(3600, "seconds", "sandbox seconds; null: for as long as it takes", optional=True)}),
    Fault("F39", "The notices of a change that a request makes arrive before that request is answered.",
          layer="notice", on=_NOTICE, only=_NOTICE),
    Fault("F40", "The notices of one change of a refund are not signed as they should be.", layer="notice",
          on=_NOTICE, only=_NOTICE, params={
              "how": Param("bad_signature", "text", "what is wrong with the signature",
                           ("bad_signature", "old_timestamp", "no_header", "other_secret")),
              "age": Param(3600, "seconds", "old_timestamp: how old it is")}),
    Fault("F41", "Beside the notices of one change goes a rightly signed one about a refund that nobody made and an"
          " operation that nobody knows.", layer="notice", on=_NOTICE, only=_NOTICE,
          params={"operation_id": Param(None, "text", "the operation it names; null: one made up")}),
    Fault("F42", "A statement misses one line.", layer="line", on=_STATEMENT, only=_STATEMENT),
    Fault("F43", "A statement has one line more: a refund that nobody made.", layer="day", on=_STATEMENT,
          only=_STATEMENT, matches=("tenant",), params={
              "amount_minor": Param(1000, "minor", "its amount"),
              "payment_ref": Param(None, "text", "the payment it names; null: one that does not exist")}),
    Fault("F44", "A statement has one line twice, with the same ids.", layer="line", on=_STATEMENT, only=_STATEMENT),
    Fault("F45", "A line of a statement is late: from now on it is dated `days` later.", layer="line", on=_STATEMENT,
          only=_STATEMENT, params={"days": Param(1, "count", "how many days late")}),
    Fault("F46", "The total of a statement is not what is listed. It meets statements whose total is asked for.",
          layer="day", on=_STATEMENT, only=_STATEMENT, matches=("tenant",),
          params={"by": Param(1, "shift", "how many lines more are claimed; negative: fewer")}),
    Fault("F47", "A statement is missing: it is empty, or said to be not available.", layer="day", on=_STATEMENT,
          only=_STATEMENT, matches=("tenant",), params={
              "how": Param("empty", "text", "how it is missing", ("empty", "unavailable")),
              "status": Param(409, "text", "unavailable: the status", (404, 409, 503))}),
    Fault("F48", "A line of a statement is dated `seconds` past the midnight (UTC) that ends its day, from now on; with"
          " a negative number, before the midnight that begins it.", layer="line", on=_STATEMENT, only=_STATEMENT,
          params={"seconds": Param(1, "shift", "whole seconds")}),
    Fault("F49", "Modes or accounts are mixed up: a test account says livemode true (payments, events, notices), or the"
          " account's lists show another tenant's things too.", layer="mode",
          on=("payment", "list", "statement", "events", "notice"),
          only=("payment", "list", "statement", "events", "notice"),
          on_by={"livemode": _LIVEMODE, "account": _ACCOUNT},
          params={"what": Param("livemode", "text", "what is mixed up", ("livemode", "account"))}),
)
