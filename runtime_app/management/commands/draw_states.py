"""`manage.py draw_states`: write the pages of docs/ that show the code's own tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from runtime_app import invariants
from runtime_app.events import TYPES
from runtime_app.reconciliation.classes import CLASSES
from runtime_app.reconciliation.classify import RULES, SAYS, Then
from runtime_app.reconciliation.table import ROWS, Finding, Row, Verdict
from runtime_app.states import (
    FINAL,
    MOVES,
    OPERATION_LEGAL,
    UNRESOLVED,
    WAITING_FOR_PEOPLE,
    OperationState,
    Parked,
    Status,
)
from runtime_app.timing import Timing

_NOTE = "<!-- Written by `manage.py draw_states` from the code's own tables; change those, not this page. -->"

PARKED = {
    Parked.DEAD_LETTER: "its retries are used up; somebody must look at what it stumbles over",
    Parked.TENANT_SUSPENDED: "its tenant is suspended",
    Parked.RESTORE_HOLD: "it was found after a restore, and is held until that is looked through",
    Parked.SIBLING_IN_FLIGHT: "another refund of the same payment is in flight; it goes on when that is resolved",
    Parked.CASE_OPEN: "a case about its payment or order is open; it goes on when a person has closed that",
    Parked.NO_WORKER: "no running worker knows this version of its workflow",
}

FINDINGS = {
    Finding.SUCCEEDED: "one refund of ours, as asked for, done",
    Finding.PENDING: "one refund of ours, accepted and not final",
    Finding.FAILED: "our refund, failed or cancelled at the provider",
    Finding.MISMATCH: "one refund with our id that differs from the request",
    Finding.DUPLICATE: "more than one refund with our id",
    Finding.LOOKALIKES: "none with our id, but one like it without any",
    Finding.ABSENT: "nothing, on a complete look that adds up",
    Finding.INCONCLUSIVE: "no answer, or one that does not add up",
    Finding.RESEND_ACCEPTED: "the resend was accepted",
    Finding.RESEND_BURNED: "the resend replays a stored server error",
    Finding.RESEND_IN_USE: "the resend was not taken now",
    Finding.RESEND_CONFLICT: "the resend's key was used for something else",
    Finding.RESEND_UNKNOWN: "the resend's outcome is not known either",
    Finding.NO_LOOKUP: "the provider cannot be asked at all",
}

VERDICTS = {
    Verdict.COMPLETE: "the operation succeeded, the task is completed",
    Verdict.COMPLETE_TOO_LATE: "the operation succeeded, the task is completed; the cancel came too late",
    Verdict.WAIT_PENDING: "pending; look again later",
    Verdict.SEND_CANCEL: "ask the provider to cancel it, then look again",
    Verdict.DECLINED: "the operation failed; the task fails, or is cancelled if that was wished; the hold is released",
    Verdict.NOT_EXECUTED: "proved not executed: the task is cancelled, the hold released; looked at for a while longer",
    Verdict.RESEND: "send the same frozen request again under the same key",
    Verdict.LOOK_AGAIN: "look at once: what the resend said is not the truth by itself",
    Verdict.WAIT: "unchanged; look again later",
    Verdict.STOP_RESENDS: "no resend any more; look again later",
    Verdict.CASE_STALE_PENDING: "a case for a person: pending for too long",
    Verdict.CASE_MISMATCH: "a case for a person, and nothing of the order is submitted: the refund differs",
    Verdict.CASE_DUPLICATE: "the first counts as done, the others as excess; a case for a person, and nothing of the"
    " order is submitted",
    Verdict.CASE_LOOKALIKES: "a case for a person: is one of these ours?",
    Verdict.CASE_KEY_CONFLICT: "a case for a person, and nothing moves by itself: the key belongs to another request",
    Verdict.CASE_ABSENT_FINAL: "a case for a person: absent for good, and nobody wished to cancel",
    Verdict.CASE_LOOKUP_UNAVAILABLE: "a case for a person: the provider cannot be asked",
    Verdict.CASE_LATE: "the operation succeeded late: balance follows, the task keeps its end, a case for a person",
    Verdict.CASE_LATE_ACCEPTED: "a case for a person: accepted after all; looked at again",
    Verdict.CASE_RETURNED: "the operation is returned: balance follows, the task keeps its end, a case for a person",
    Verdict.STANDS: "what was proved stands",
}


def states_page() -> str:
    return _page(
        "States",
        "How far a task has come. `runtime_app/states.py` holds this as data; the database refuses every other move,"
        " and `runtime_app/transitions.py` is the only place that makes one.",
        _diagram("queued", ((move.source, move.target) for move in MOVES)),
        "A final state never changes. What the money did afterwards is the operation's to say, and the task then"
        " carries an attention mark.",
        _table(("from", "to", "when"), [("(new)", "queued", "accepted at the entrance"),
                                        *((m.source, m.target, m.when) for m in MOVES)]),
        "## Who moves it on",
        _table(("state", "who"), [(status, _who(status)) for status in Status]),
        "## Parked",
        "A parked task keeps its state and is left alone because",
        _table(("mark", "why"), list(PARKED.items())),
        "## Operations",
        f"What is known of one effect at the provider. In doubt are {_named(UNRESOLVED)}: at most one operation of a"
        " payment is, and its amount stays held.",
        _diagram("submitting", ((s, t) for s in OperationState for t in OperationState if (s, t) in OPERATION_LEGAL)),
    )


def _who(status: Status) -> str:
    if status in FINAL:
        return "nobody: this is an end"
    if status in WAITING_FOR_PEOPLE:
        return "a person, or the deadline"
    return "a worker"


def _drawn() -> list[Row]:
    """Rows that only say that a proved outcome stands are one kind, and shown once."""
    standing = [row for row in ROWS if row.verdict == Verdict.STANDS]
    return [row for row in ROWS if row.verdict != Verdict.STANDS or row is standing[0]]


def reconciliation_page() -> str:
    timing = Timing()
    return _page(
        "Reconciliation",
        "When the outcome of a send is not known, the provider is asked by our own reference, and this table says what"
        " follows (`runtime_app/reconciliation/table.py`). The first row that holds is taken. Nothing here makes a new"
        " operation, and silence is never taken for a failure.",
        _table(("row", "found", "when", "what follows", "who"),
               [(str(row.number), FINDINGS[row.finding], row.when, VERDICTS[row.verdict], row.who)
                for row in _drawn()]),
        "An absence is believed only with the sender's lock in hand, so that nobody else can still be sending, and"
        " after the last moment at which anybody might have sent.",
        "## Cases",
        "What a person must look at (`runtime_app/reconciliation/classes.py`). While it is open, nothing new is"
        " submitted on what it stops. A case closes by itself when the outcome is proved, or only by a person who says"
        " what follows.",
        _table(("class", "what it is", "severity", "stops", "closed", "a person has looked within"),
               [(f"`{name}`", each.says, each.severity, each.blocks,
                 "by proof, or by a person" if each.ends_with_proof else "by a person", duration(each.within))
                for name, each in CLASSES.items()]),
        "## When it is looked at",
        _table(("what", "how long"), [
            ("looks at an unknown outcome, one after another", _durations(timing.reconcile_after)),
            ("and then every", duration(timing.reconcile_every)),
            ("looks at a pending refund", _durations(timing.pending_after)),
            ("and then every", duration(timing.pending_every)),
            ("absence proves nothing before",
             f"{timing.absent_count} complete looks and {duration(timing.absent_age)}"),
            ("the horizon: so long a provider may act on what was sent, unless it promises less",
             duration(timing.max_in_flight)),
            ("resends of one request at most", str(timing.resend_most)),
            ("resends stop before the provider forgets the key by", duration(timing.key_margin)),
            ("an unknown outcome wears a badge after", duration(timing.attention_after)),
            ("a pending refund becomes a case after", duration(timing.pending_sla)),
            ("a provider that cannot be asked becomes a case after", duration(timing.handover)),
            ("what was refused without a refund that says so is looked at for", duration(timing.refused_watch)),
            ("what was proved not executed is looked at for", duration(timing.late_watch)),
            ("requests to one account's provider about what happened",
             f"{timing.look_rate:g} a second, {timing.look_burst:g} at once"),
            ("answers in a row that tell nothing and stop them for a while",
             f"{timing.look_troubles}; for {duration(timing.closed_first)}, then longer, {duration(timing.closed_most)}"
             " at most"),
            ("outcomes due and never answered for which the account's list is read instead",
             f"more than {timing.sweep_from}, once in {duration(timing.sweep_every)}"),
        ]),
        "Every value is in `runtime_app/timing.py`; times are spread by a fifth; `COUNTERSIGN_TIMING` changes them.",
        "## What is not promised",
        "Rare things that come together can still move money wrongly: a worker that stalls just before the wire until"
        " the horizon has passed, and whose request is then slow too; one that stalls past its deadline and loses its"
        " database meanwhile; a stall as long as the provider remembers keys; a provider that forgets keys against its"
        " promise and acts late. `tests/model/` searches every order of steps and faults within its bounds, and finds"
        " these four and no other. What they did is found by the late look or by comparing ledgers.",
    )


def statements_page() -> str:
    timing = Timing()
    return _page(
        "Statements",
        "Each day of an account is read from the provider, or brought as a file, and compared with our operations"
        " (`runtime_app/statements/`). A statement is refused as a whole or stored as a whole, and the same one again"
        " adds nothing. Lines are matched by the provider's reference and then by ours; a like amount is only a"
        " suggestion for a person. Nothing that is found here moves money or proves an outcome by itself.",
        "A day is **whole** when all its pages were read, as many lines came as were counted, opening balance and lines"
        " make the closing balance, no statement number is missing before it, and its opening balance is the closing"
        " one of the day before. Until then it cannot be closed, and nothing counts as missing because of it.",
        "## What a line is",
        "The first of these that holds (`runtime_app/reconciliation/classify.py`).",
        _table(("the line", "class", "what follows"),
               [(r.when, f"`{r.class_name}`", FOLLOWS[r.then]) for r in RULES]),
        "An operation that no line shows is `TIMING` until the last statement on which it may still stand; then, when"
        " every one of those days is whole, `MISSING_AT_PROVIDER`, a case. One whose outcome is not proved is"
        " `IN_DOUBT`. A line that is told again counts once, with the note `DUPLICATE_LINE`.",
        _table(("class", "says"), [(f"`{name}`", says) for name, says in SAYS.items()]),
        "## Closing a day",
        "A person with the right to work reconciliation closes a day that is whole and on which every line and every"
        " operation is accounted for, or is in an open case, which the closing names. What is closed is what the person"
        " saw: when it has changed since, nothing is recorded. A closed day does not change; what comes for it later is"
        " stored, and its case names the day.",
        "## When",
        _table(("what", "how long"), [
            ("a day's statement is read so long after the provider's midnight", duration(timing.statement_at)),
            ("one that is not whole, or waits for something, again after", duration(timing.statement_retry)),
            ("doubling up to", duration(timing.statement_every)),
            ("a line, or a whole statement, may still come for", duration(timing.statement_sla)),
        ]),
        "Every value is in `runtime_app/timing.py`; `COUNTERSIGN_TIMING` changes them.",
    )


def events_page() -> str:
    return _page(
        "Events",
        "Everything that can happen to a task, in the past tense (`runtime_app/events.py`). A task's events are"
        " numbered without a gap, each one's hash covers the one before it, and none is ever changed or deleted.",
        _table(("type", "what it says"), [(f"`{type}`", says) for type, says in TYPES.items()]),
    )


def invariants_page() -> str:
    return _page(
        "Invariants",
        "What must hold at every moment (`runtime_app/invariants/`). `manage.py check_invariants` checks all of them:"
        " exit code 0 when they hold, 1 with a list of what breaks them, 2 when it cannot tell. `--sandbox URL`"
        " compares with the ledger of a sandbox, `--stuck-after SECONDS` also asks for tasks overdue by so much.",
        _table(("name", "what it says"), [(f"`{name}`", says) for name, says in invariants.NAMES.items()]),
    )


PAGES: dict[str, Callable[[], str]] = {
    "states.md": states_page,
    "reconciliation.md": reconciliation_page,
    "statements.md": statements_page,
    "events.md": events_page,
    "invariants.md": invariants_page,
}


def _page(title: str, *parts: str) -> str:
    return "\n\n".join([f"# {title}", _NOTE, *parts]) + "\n"


FOLLOWS = {
    Then.SETTLED: "nothing: it is accounted for",
    Then.WAIT: "it is compared again",
    Then.ASK: "the provider is asked about the operation, and its answer decides by the table",
    Then.ASK_PAYMENT: "all refunds of the payment are looked at",
    Then.PROVE: "the line itself goes through the table",
    Then.RECORDED: "nothing more: what the provider answered has opened a case",
    Then.OPEN: "a case for a person",
}


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines)


def _diagram(begins: str, moves: Iterable[tuple[str, str]]) -> str:
    """A state diagram in Mermaid; what leads nowhere ends."""
    listed = list(moves)
    sources = {source for source, _ in listed}
    ends = dict.fromkeys(target for _, target in listed if target not in sources)
    lines = [f"[*] --> {begins}", *(f"{s} --> {t}" for s, t in listed), *(f"{state} --> [*]" for state in ends)]
    return "\n".join(["```mermaid", "stateDiagram-v2", *(f"    {line}" for line in lines), "```"])


def _named(values: Iterable[str]) -> str:
    *first, last = sorted(str(value) for value in values)
    return f"{', '.join(first)} and {last}"


def duration(seconds: float) -> str:
    """Seconds in the largest unit that divides them."""
    for unit, size in (("day", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size and seconds % size == 0:
            count = int(seconds // size)
            return f"{count} {unit}" + ("s" if unit == "day" and count != 1 else "")
    return f"{seconds:g} s"


def _durations(values: Sequence[float]) -> str:
    return ", ".join(duration(value) for value in values)


class Command(BaseCommand):
    help = "Write the pages of docs/ that show the code's own tables; --check only says whether they are up to date."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 when a page is stale")
        parser.add_argument("--folder", type=Path, default=Path(settings.BASE_DIR) / "docs")

    def handle(self, *args: Any, check: bool, folder: Path, **options: Any) -> None:
        stale = [name for name, page in PAGES.items() if _read(folder / name) != page()]
        if check and stale:
            raise CommandError(f"Stale: {', '.join(stale)}. Run `manage.py draw_states`.")
        try:
            for name in stale:
                (folder / name).write_text(PAGES[name](), "utf-8")
        except OSError as error:
            raise CommandError(f"{folder} cannot be written: {error.strerror}.", returncode=2) from None
        self.stdout.write(f"Written: {', '.join(stale)}." if stale else "All pages are up to date.")


def _read(path: Path) -> str | None:
    return path.read_text("utf-8") if path.is_file() else None
