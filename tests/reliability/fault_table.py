"""Every fault of the sandbox and what must become of a refund that meets it: the decision table, read from outside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class End:
    """The task's status when nothing happens by itself any more, and the classes of all cases that were opened."""

    status: str
    cases: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return "+".join((self.status, *sorted(self.cases)))


def end(status: str, *cases: str) -> End:
    return End(status, frozenset(cases))


HIDDEN = frozenset({"LATE_EXECUTION", "RETURNED", "DUPLICATE_EXECUTION"})


@dataclass(frozen=True, slots=True)
class Arm:
    """One fault to arm; `{payment}`, `{other}` and `{tenant}` in its values are the cell's own."""

    fault: str
    how: Mapping[str, Any] = field(default_factory=dict)
    match: Mapping[str, str] = field(default_factory=lambda: {"payment_ref": "{payment}"})


@dataclass(frozen=True, slots=True)
class Row:
    """A fault, with what is needed beside it for it to be met. `ends`: nobody wishes to cancel, or somebody does once
    everything is quiet after the submission. `told`: the provider's notices are delivered. `alone`: a tenant, and so an
    account and its statements, for this cell only. `port`: armed when a worker is about to send, and nothing else runs
    meanwhile. `executions` is how often the provider moved money for it at most; more than one is its own fault."""

    fault: str
    what: str
    arms: tuple[Arm, ...]
    ends: tuple[End, End]
    told: bool = False
    alone: bool = False
    port: bool = False
    executions: int = 1
    sends: int | None = None  # how often the request was sent when nobody wished to cancel; None: it does not matter

    @property
    def hides(self) -> bool:
        """The provider does something that it does not tell; until it is found out, its ledger says more than we."""
        return any(HIDDEN & end.cases for end in self.ends)


def arm(fault: str, /, match: Mapping[str, str] | None = None, **how: Any) -> Arm:
    return Arm(fault, how) if match is None else Arm(fault, how, match)


TENANT = {"tenant": "{tenant}"}
DONE, CANCELLED, FAILED = end("completed"), end("cancelled"), end("failed")
DONE_ANYWAY, NEVER_SENT, LOST = (DONE, DONE), (DONE, CANCELLED), (DONE, CANCELLED)
PENDING = arm("F21", seconds=600)


def case(name: str, status: str = "reconciling") -> End:
    return end(status, name)


def both(one: End) -> tuple[End, End]:
    return one, one


ROWS: tuple[Row, ...] = (
    # Transport. What was lost before it arrived is sent again once, under its key; what arrived is found.
    Row("F1", "the port is closed when the worker sends", (arm("F1", match={}),), NEVER_SENT, port=True, sends=1),
    Row("F2", "close before", (arm("F2"),), LOST, sends=2),
    Row("F2", "reset before", (arm("F2", how="reset"),), LOST, sends=2),
    Row("F3", "hang before", (arm("F3"),), LOST, sends=2),
    Row("F4", "close after", (arm("F4"),), DONE_ANYWAY, sends=1),
    Row("F4", "reset after", (arm("F4", how="reset"),), DONE_ANYWAY, sends=1),
    Row("F5", "slow after", (arm("F5", seconds=30),), DONE_ANYWAY, sends=1),
    Row("F5", "slow before and after", (arm("F5", seconds=30, commit_after=3),), DONE_ANYWAY, sends=1),
    Row("F6", "cut short after", (arm("F6"),), DONE_ANYWAY, sends=1),
    Row("F6", "cut short before", (arm("F6", when="before"),), LOST, sends=2),
    Row("F7", "garbage after", (arm("F7"),), DONE_ANYWAY, sends=1),
    Row("F7", "garbage before", (arm("F7", when="before"),), LOST, sends=2),
    Row("F8", "502 after", (arm("F8"),), DONE_ANYWAY, sends=1),
    Row("F8", "503 before", (arm("F8", when="before", status=503),), LOST, sends=2),
    Row("F9", "the connection ends idle before the send", (arm("F9", on="payment"),), DONE_ANYWAY),
    # Answers. A stored 500 is for ever: nothing may be sent again, and people declare.
    Row("F10", "500 before, stored", (arm("F10"),), (case("ABSENT_FINAL"), CANCELLED), sends=2),
    Row("F11", "500 after, stored", (arm("F11"),), DONE_ANYWAY, sends=1),
    Row("F12", "429", (arm("F12"),), NEVER_SENT, sends=2),
    Row("F12", "429 without a time", (arm("F12", retry_after=None),), NEVER_SENT, sends=2),
    Row("F13", "409 key in use", (arm("F13"),), LOST, sends=2),
    Row("F13", "409 lock timeout", (arm("F13", code="lock_timeout"),), LOST, sends=2),
    Row("F14", "claims to be a replay", (arm("F14"),), DONE_ANYWAY, sends=1),
    Row("F14", "a replay that does not say so", (arm("F4"), arm("F14", header="absent", times=3)), DONE_ANYWAY),
    Row("F15", "other body, before", (arm("F15"),), (case("KEY_CONFLICT"), end("cancelled", "KEY_CONFLICT")), sends=1),
    Row("F15", "other body, after", (arm("F15", when="after"),), both(end("completed", "KEY_CONFLICT")), sends=1),
    Row("F16", "lost before, key forgotten", (arm("F16"), arm("F2")), LOST, sends=2),
    Row("F16", "lost after, key forgotten", (arm("F16"), arm("F4")), DONE_ANYWAY, sends=1),
    Row("F17", "lost before, keys ignored", (arm("F17"), arm("F2")), LOST, sends=2),
    Row("F17", "lost after, keys ignored", (arm("F17"), arm("F4")), DONE_ANYWAY, sends=1),
    Row("F17", "500 before, not stored", (arm("F17", mode="success_only"), arm("F10")), LOST, sends=2),
    Row("F18", "401 once", (arm("F18"),), NEVER_SENT, sends=2),
    Row("F18", "403 once", (arm("F18", status=403),), NEVER_SENT, sends=2),
    Row("F18", "401 for good", (arm("F18", times=None),), (end("ready"), CANCELLED)),
    Row("F19", "refused", (arm("F19"),), both(FAILED), sends=1),
    Row("F19", "refused for its amount", (arm("F19", code="amount_too_large"),), both(FAILED), sends=1),
    Row("F19", "refused, and done all the same", (arm("F19", when="after"),), both(end("failed", "LATE_EXECUTION")),
        sends=1),
    # Time. What the provider still carries out later is found, or found out.
    Row("F20", "executed after ten minutes", (arm("F20", seconds=600),), DONE_ANYWAY),
    Row("F20", "executed after ten minutes, holding its key", (arm("F20", seconds=600, holds_key=True),), DONE_ANYWAY),
    Row("F20", "executed after twelve hours", (arm("F20", seconds=43200),),
        (DONE, end("cancelled", "LATE_EXECUTION")), sends=2),
    Row("F20", "executed after twelve hours, told", (arm("F20", seconds=43200),),
        (DONE, end("cancelled", "LATE_EXECUTION")), told=True, sends=2),
    Row("F21", "pending, then done", (PENDING,), DONE_ANYWAY, sends=1),
    Row("F21", "pending, then failed", (arm("F21", seconds=600, then="failed"),), (FAILED, CANCELLED), sends=1),
    Row("F21", "pending, then canceled", (arm("F21", seconds=600, then="canceled"),), (FAILED, CANCELLED), sends=1),
    Row("F22", "waits for the customer for good", (arm("F22"),), (case("STALE_PENDING"), CANCELLED), sends=1),
    Row("F22", "waits for the customer, then done", (arm("F22", seconds=600),), (DONE, CANCELLED), sends=1),
    Row("F23", "done, and back after a day, told", (arm("F23"),), both(end("completed", "RETURNED")), told=True),
    Row("F23", "done, and back after a day, in the statement", (arm("F23"),), both(end("completed", "RETURNED"))),
    Row("F24", "pending for want of balance", (arm("F24"),), both(case("STALE_PENDING")), sends=1),
    # Looks. None that is not complete and in agreement with the payment's total counts as an absence.
    Row("F25", "the list lags", (arm("F4"), arm("F25", seconds=3600)), DONE_ANYWAY, sends=1),
    Row("F26", "the list ends early", (arm("F4"), arm("F26", times=4)), DONE_ANYWAY, sends=1),
    Row("F26", "the list leaves one out", (arm("F4"), arm("F26", lie="lost_entry", times=4)), DONE_ANYWAY, sends=1),
    Row("F27", "500 to six looks", (arm("F4"), arm("F27", on=["list"], times=6)), DONE_ANYWAY, alone=True, sends=1),
    Row("F27", "500 to every look", (arm("F4"), arm("F27", on=["list"], times=None)),
        both(case("LOOKUP_UNAVAILABLE")), alone=True, sends=1),
    Row("F27", "500 to every statement", (arm("F27", on=["statement"], times=None, match=TENANT),), DONE_ANYWAY,
        alone=True, sends=1),
    Row("F28", "404 for the refund", (PENDING, arm("F25", seconds=3600, times=4), arm("F28", times=3)), DONE_ANYWAY,
        sends=1),
    Row("F28", "404 for the payment", (arm("F28", on=["payment"]),), DONE_ANYWAY, sends=1),
    # Data. What differs is a person's, and freezes the order.
    Row("F29", "another amount", (arm("F29"),), both(case("AMOUNT_MISMATCH")), sends=1),
    Row("F29", "another amount, and the answer lost", (arm("F29"), arm("F4")), both(case("AMOUNT_MISMATCH")), sends=1),
    Row("F29", "another currency", (arm("F29", currency="EUR"),), both(case("CURRENCY_MISMATCH")), sends=1),
    Row("F30", "another payment", (arm("F30", payment_ref="{other}"),), both(case("PARENT_MISMATCH")), sends=1),
    Row("F31", "its name lost", (arm("F31"),), DONE_ANYWAY, sends=1),
    Row("F31", "its name and the answer lost", (arm("F31"), arm("F4")), DONE_ANYWAY, sends=1),
    Row("F32", "executed twice under one key, told", (arm("F32"),), both(end("completed", "DUPLICATE_EXECUTION")),
        told=True, executions=2, sends=1),
    Row("F32", "executed twice under one key, in the statement", (arm("F32"),),
        both(end("completed", "DUPLICATE_EXECUTION")), executions=2, sends=1),
    Row("F33", "refunded outside before", (arm("F33", amount_minor=700),),
        (end("ready", "EXTERNAL_REFUND"), end("cancelled", "EXTERNAL_REFUND")), sends=0),
    Row("F34", "disputed", (arm("F34", amount_minor=5000),), both(end("failed", "DISPUTED")), sends=0),
    Row("F35", "runs for long, others told to wait", (arm("F35", seconds=4),), DONE_ANYWAY, sends=1),
    Row("F35", "runs for long, others beside it", (arm("F35", seconds=4, meanwhile="both"),), DONE_ANYWAY, sends=1),
    # Notices. They speed a look up, and never decide.
    Row("F36", "lost", (PENDING, arm("F36", times=None)), DONE_ANYWAY, told=True, sends=1),
    Row("F37", "three times", (PENDING, arm("F37", copies=3, times=None)), DONE_ANYWAY, told=True, sends=1),
    Row("F38", "out of order", (PENDING, arm("F38")), DONE_ANYWAY, told=True, sends=1),
    Row("F39", "before the answer", (PENDING, arm("F39")), DONE_ANYWAY, told=True, sends=1),
    Row("F39", "before the answer, which is lost", (arm("F39"), arm("F4")), DONE_ANYWAY, told=True, sends=1),
    *(Row("F40", how.replace("_", " "), (PENDING, arm("F40", how=how, times=None)), DONE_ANYWAY, told=True, sends=1)
      for how in ("bad_signature", "old_timestamp", "no_header", "other_secret")),
    Row("F41", "of nobody's refund", (PENDING, arm("F41")), DONE_ANYWAY, told=True, sends=1),
    # Statements. They are read each day, again until they are whole, and move nothing.
    Row("F42", "a line missing once", (arm("F42"),), DONE_ANYWAY, sends=1),
    Row("F42", "a line missing for good", (arm("F42", times=None),), both(end("completed", "MISSING_AT_PROVIDER")),
        sends=1),
    Row("F43", "a line of nobody's", (arm("F43", match=TENANT),), both(end("completed", "MISSING_HERE")), alone=True),
    Row("F44", "a line twice", (arm("F44"),), DONE_ANYWAY, sends=1),
    Row("F45", "a line a day late", (arm("F45"),), DONE_ANYWAY, sends=1),
    Row("F46", "a total that is not the sum", (arm("F46", match=TENANT),), DONE_ANYWAY, alone=True),
    Row("F47", "a day missing", (arm("F47", match=TENANT),), DONE_ANYWAY, alone=True),
    Row("F47", "a day not there yet", (arm("F47", how="unavailable", match=TENANT),), DONE_ANYWAY, alone=True),
    Row("F48", "a line past midnight", (arm("F48"),), DONE_ANYWAY, sends=1),
    # That day was read before, and was whole then: only a person can say that its statement has changed since.
    Row("F48", "a line before midnight, of a day read before", (arm("F48", seconds=-1),),
        both(end("completed", "MISSING_AT_PROVIDER")), sends=1),
    # Mode.
    Row("F49", "the payment says live", (arm("F49", on="payment"),),
        (end("ready", "ACCOUNT_OR_MODE"), end("cancelled", "ACCOUNT_OR_MODE")), sends=0),
    Row("F49", "a notice says live", (PENDING, arm("F49", on="notice")), both(end("completed", "ACCOUNT_OR_MODE")),
        told=True, sends=1),
    Row("F49", "lists show other tenants' things",
        (arm("F4"), arm("F49", what="account", on="list", times=None, match=TENANT)), DONE_ANYWAY, alone=True, sends=1),
    # For good, since the first statement that is read may be of a day on which nobody had anything.
    Row("F49", "a statement shows other tenants' things",
        (arm("F49", what="account", on="statement", times=None, match=TENANT),),
        both(end("completed", "ACCOUNT_OR_MODE")), alone=True),
    Row("F50", "an hour without the provider", (arm("F50", match={}, seconds=3600),), LOST, port=True, sends=2),
)
