"""Whether a cell ended right: the provider's ledger held against our own rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.reliability.room import Room

FINAL = {"completed", "rejected", "failed", "cancelled"}
HOLD_OF = {
    "completed": "consumed", "failed": "released", "cancelled": "released", "reconciling": "held", "ready": "held",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """One refund that was asked for in a room. Order and request key have one name; the payment is `pi_` and that."""

    name: str
    amount: int
    accepted: Path

    @property
    def payment(self) -> str:
        return f"pi_{self.name}"


def ask(room: Room, amount: int = 6000, captured: int = 20000) -> Asked:
    """A fresh order for one refund, which a story then asks for. The payment has enough for it to be made twice."""
    name = room.new_name()
    room.meet_clocks()
    room.sandbox.order(name, payments={f"pi_{name}": captured})
    return Asked(name, amount, room.folder / f"{name}.accepted")


def judge(room: Room, asked: Asked, *, twice: bool = False) -> list[str]:
    """What is wrong, in words; nothing when all is right. The task must have ended, or wait for a person. `twice`: the
    provider has refunded twice by its own fault, and a person must know."""
    refunds = [r for r in room.sandbox.refunds(asked.payment) if r["idempotency_key"] is not None]  # else not by us
    found = room.ask(
        "SELECT id, status, attention, lease_owner, event_seq, parked_reason FROM runtime_app_task"
        " WHERE request_key = %s", asked.name,
    )
    if not found:
        lost = ["an accepted request is lost"] if asked.accepted.exists() else []
        return lost + ["a refund without a task"] * len(refunds)
    task, status, attention, owner, events, parked = found[0]
    wrong, made = [], 2 if twice else 1
    if len(refunds) > made:
        wrong.append(f"{len(refunds)} refunds")
    if twice and attention != "DUPLICATE_EXECUTION":
        wrong.append("refunded twice, and nobody is told")
    if status == "completed" and [r["amount_minor"] for r in refunds] != [asked.amount] * made:
        wrong.append(f"completed with {len(refunds)} refunds")
    if status in FINAL - {"completed"} and refunds:
        wrong.append(f"a refund on a task that is {status}")
    if status not in FINAL and (status != "reconciling" or attention is None) and parked != "case_open":
        wrong.append(f"stuck in {status}")
    if status in FINAL and owner is not None:
        wrong.append("an ended task with an owner")
    return wrong + _events(room, task, status, events) + _money(room, asked, task, status, made) + _sends(room, task)


def _events(room: Room, task: object, status: str, told: int) -> list[str]:
    types = [t for (t,) in room.ask("SELECT type FROM runtime_app_event WHERE task_id = %s ORDER BY seq", task)]
    count, last = room.ask("SELECT count(*), max(seq) FROM runtime_app_event WHERE task_id = %s", task)[0]
    wrong = [] if count == last == told else [f"{count} events, the last {last}, the task says {told}"]
    ends = [t for t in types if t in {f"task.{end}" for end in FINAL}]
    if ends != ([f"task.{status}"] if status in FINAL else []):
        wrong.append(f"{status} with the ends {ends}")
    return wrong


def _money(room: Room, asked: Asked, task: object, status: str, made: int) -> list[str]:
    """The hold, the balance, the operation and the message to the order system say the same as the task."""
    wrong = []
    holds = {s for (s,) in room.ask("SELECT state FROM runtime_app_hold WHERE task_id = %s", task)}
    if status in HOLD_OF and not holds <= {HOLD_OF[status], "released"}:
        wrong.append(f"{status} with holds {sorted(holds)}")
    balance = room.ask(
        "SELECT refunded_minor, reserved_minor FROM runtime_app_balance WHERE payment_ref = %s", asked.payment
    )
    due = {"completed": (asked.amount * made, 0), "reconciling": (0, asked.amount), "ready": (0, asked.amount)}.get(
        status, (0, 0))
    if balance and balance[0] != due:
        wrong.append(f"{status} with a balance of {balance[0]}")
    intents = room.ask(
        "SELECT done_at IS NOT NULL FROM runtime_app_intent WHERE task_id = %s AND kind = 'order.record_refund'", task
    )
    if intents != ([(True,)] if status == "completed" else []):
        wrong.append(f"{status} with the messages {intents}")
    heard = [r for r in room.sandbox.requests(order_ref=asked.name, method="POST") if r["answered"] == 200]
    if status == "completed" and not heard:
        wrong.append("completed, and the order system was not told")
    states = {s for (s,) in room.ask("SELECT state FROM runtime_app_operation WHERE task_id = %s", task)}
    if status == "completed" and states != {"succeeded"}:
        wrong.append(f"completed with operations {sorted(states)}")
    return wrong


def _sends(room: Room, task: object) -> list[str]:
    """One operation; its requests carried one key and one body however often they were sent."""
    operations = room.ask("SELECT id::text, idempotency_key FROM runtime_app_operation WHERE task_id = %s", task)
    if len(operations) > 1:
        return [f"{len(operations)} operations"]
    wrong = []
    for operation, key in operations:
        posts = room.sandbox.requests(operation_id=operation, method="POST")
        sent = [r for r in posts if r["path"] == "/v1/refunds"]
        if {r["idempotency_key"] for r in sent} - {key}:
            wrong.append("sent under another key")
        if len({r["body_sha256"] for r in sent}) > 1:
            wrong.append("sent with different bodies")
    return wrong
