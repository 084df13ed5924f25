"""Short scenes about money, each with what must come of it; a careless change of the core makes one end otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.reliability.nursery import End
from tests.reliability.oracle import Asked, ask
from tests.reliability.room import Room

AMOUNT, OUTSIDE = 3000, 700
Mutants = tuple[str, ...]
Scene = Callable[[Room, Mutants], list[str]]
HOUR = 3600.0


def play(room: Room, asked: Asked, mutants: Mutants, *, key: str = "", amount: int = AMOUNT, **more: Any) -> End:
    """Somebody asks, Ada approves, and a worker works until it has ended, needs a person, or `passes` are over."""
    return room.nursery.wait(room.nursery.start(
        "story", mutants=mutants, order=asked.name, amount=amount, key=key or asked.name, accepted=str(asked.accepted),
        points_log=room.folder / f"{asked.name}.points", **more,  # points are counted only where they are logged
    ))


def act(room: Room, asked: Asked, mutants: Mutants, name: str, **said: Any) -> Any:
    return room.nursery.do(f"scene_acts.{name}", mutants=mutants, order=asked.name, **said)


def fault(room: Room, asked: Asked, code: str, **how: Any) -> None:
    room.sandbox.fault(code, match={"payment_ref": asked.payment}, **how)


def differs(room: Room, asked: Asked, *, made: int, key: str = "", **wanted: Any) -> list[str]:
    """How it stands, where that is not as it must be: `status`, `cases`, `refunded`, `reserved` and `external` here,
    and how many refunds were made there."""
    found = room.ask(
        "SELECT t.status, b.refunded_minor, b.reserved_minor, b.external_provider_minor, ARRAY(SELECT DISTINCT"
        " c.class_name FROM runtime_app_case c WHERE c.payment_ref = b.payment_ref) FROM runtime_app_task t"
        " LEFT JOIN runtime_app_balance b ON b.order_ref = t.order_ref WHERE t.request_key = %s",
        key or asked.name,
    )
    status, refunded, reserved, external, cases = found[0]
    seen = {
        "status": status, "refunded": refunded, "reserved": reserved, "external": external,
        "cases": sorted(cases or ()), "made": len(room.sandbox.refunds(asked.payment)),
    }
    due = {"cases": [], "refunded": 0, "reserved": 0, "external": 0, "made": made, **wanted}
    return [f"{name} is {seen[name]}, not {due[name]}" for name in due if seen[name] != due[name]]


def outside(room: Room, mutants: Mutants) -> list[str]:
    """F33: what somebody refunded elsewhere is found before anything is sent, counts, and stops the payment."""
    asked = ask(room, AMOUNT)
    fault(room, asked, "F33", amount_minor=OUTSIDE)
    play(room, asked, mutants, passes=12)
    return differs(room, asked, status="ready", cases=["EXTERNAL_REFUND"], external=OUTSIDE, reserved=AMOUNT, made=1)


def outside_of_the_same_amount(room: Room, mutants: Mutants) -> list[str]:
    """M15: a refund that is like one of ours is not ours."""
    asked, second = ask(room, AMOUNT), "second"
    play(room, asked, mutants)
    fault(room, asked, "F33", amount_minor=AMOUNT)
    play(room, asked, mutants, key=f"{asked.name}-{second}", amount=1000, passes=12)
    return differs(
        room, asked, key=f"{asked.name}-{second}", status="ready", cases=["EXTERNAL_REFUND"], external=AMOUNT,
        refunded=AMOUNT, reserved=1000, made=2,
    )


def like_what_never_arrived(room: Room, mutants: Mutants) -> list[str]:
    """Row 9: what looks like ours and does not name it is a person's."""
    asked = ask(room, AMOUNT)
    fault(room, asked, "F2")
    play(room, asked, mutants, until_passed="stripe.create.after:1")
    fault(room, asked, "F33", amount_minor=AMOUNT)
    play(room, asked, mutants, passes=12)
    return differs(room, asked, status="reconciling", cases=["LOOKALIKES"], reserved=AMOUNT, made=1)


def late(room: Room, mutants: Mutants) -> list[str]:
    """Row 23, R19: executed long after it had been proved absent, and cancelled."""
    asked = ask(room, AMOUNT)
    fault(room, asked, "F20", seconds=2 * HOUR)
    play(room, asked, mutants, cancel_in_doubt=True)
    room.sandbox.advance(2 * HOUR)
    act(room, asked, mutants, "go_on", passes=2)
    return differs(room, asked, status="cancelled", cases=["LATE_EXECUTION"], refunded=AMOUNT, made=1)


def back_again(room: Room, mutants: Mutants) -> list[str]:
    """Row 24: the money came back after a while, and may be refunded again."""
    asked = ask(room, AMOUNT)
    fault(room, asked, "F23", seconds=60)
    play(room, asked, mutants)
    room.sandbox.advance(2 * HOUR)
    act(room, asked, mutants, "hint")
    act(room, asked, mutants, "go_on", passes=2)
    return differs(room, asked, status="completed", cases=["RETURNED"], made=0)


def twice(room: Room, mutants: Mutants) -> list[str]:
    """Row 8, F32: two refunds for one request; one is ours, the other counts as well, and a person is told."""
    asked = ask(room, AMOUNT)
    fault(room, asked, "F32")
    play(room, asked, mutants, point="stripe.create.after:1:SIGKILL")
    play(room, asked, mutants)
    return differs(
        room, asked, status="completed", cases=["DUPLICATE_EXECUTION"], refunded=2 * AMOUNT, made=2
    )


def a_lagging_list(room: Room, mutants: Mutants) -> list[str]:
    """F25: a list that does not add up to the payment's total proves no absence, so nothing is sent again."""
    asked = ask(room, AMOUNT)
    for code, how in (("F17", {}), ("F4", {}), ("F25", {"seconds": 10**6})):
        fault(room, asked, code, **how)
    play(room, asked, mutants, passes=10)
    return differs(room, asked, status="reconciling", reserved=AMOUNT, made=1)


def a_lie(room: Room, mutants: Mutants) -> list[str]:
    """Row 22: a signed notice says that it is done, and nothing was done."""
    asked = ask(room, AMOUNT)
    for code in ("F2", "F50"):
        fault(room, asked, code, **({"on": "create", "seconds": 10**6} if code == "F50" else {}))
    play(room, asked, mutants, until_passed="stripe.create.after:1")
    act(room, asked, mutants, "tell", says="succeeded")
    act(room, asked, mutants, "go_on", passes=1)
    return differs(room, asked, status="reconciling", reserved=AMOUNT, made=0)


def another_amount(room: Room, mutants: Mutants) -> list[str]:
    """Row 7, F29."""
    asked = ask(room, AMOUNT)
    fault(room, asked, "F29")
    play(room, asked, mutants)
    return differs(room, asked, status="reconciling", cases=["AMOUNT_MISMATCH"], reserved=AMOUNT, made=1)


def a_made_up_reference(room: Room, mutants: Mutants) -> list[str]:
    """M24: a person names a refund that the provider does not have."""
    asked = ask(room, AMOUNT)
    fault(room, asked, "F2")
    fault(room, asked, "F27", on=["list"], times=None)
    play(room, asked, mutants)
    told = act(room, asked, mutants, "at_the_desk", verb="attach", by="olga", ref="re_made_up")
    act(room, asked, mutants, "go_on", passes=1)
    said = [] if told == "done" else [f"attaching was {told}"]
    return said + differs(
        room, asked, status="reconciling", cases=["LOOKUP_UNAVAILABLE"], reserved=AMOUNT, made=0
    )


def one_person(room: Room, mutants: Mutants) -> list[str]:
    """Row 18, I10: whoever declares twice is one person."""
    asked = ask(room, AMOUNT)
    fault(room, asked, "F10")
    play(room, asked, mutants)
    word = {"verb": "declare_not_executed", "by": "olga", "code": "absent_everywhere", "reason": "Nothing is there."}
    told = [act(room, asked, mutants, "at_the_desk", **word) for _ in range(2)]
    said = [] if told == ["done", "forbidden"] else [f"declaring was {told}"]
    return said + differs(room, asked, status="reconciling", cases=["ABSENT_FINAL"], reserved=AMOUNT, made=0)


SCENES: tuple[Scene, ...] = (
    outside, outside_of_the_same_amount, like_what_never_arrived, late, back_again, twice, a_lagging_list, a_lie,
    another_amount, a_made_up_reference, one_person,
)
