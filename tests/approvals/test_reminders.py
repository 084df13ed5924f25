"""An open approval reminds and escalates by itself: each once, in working hours, and never after a decision."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core import mail

from approvals import reminders, verbs
from approvals.models import Approval, Note
from runtime_app import clock
from runtime_app.errors import Forbidden, RuntimeAppError
from runtime_app.models import Event, Intent
from tests.approvals.telling import give_addresses, remind, send, states, tell
from tests.approvals.test_decide import together
from tests.approvals.test_policies import in_force, review, rules
from tests.approvals.test_telling import at, to
from tests.world import World

ALWAYS = {"days": [0, 1, 2, 3, 4, 5, 6], "opens": "00:00", "closes": "23:59"}
NOON = datetime(2027, 6, 1, 10, tzinfo=UTC)  # a Tuesday, 12:00 in Berlin


@pytest.fixture(autouse=True)
def berlin(world: World) -> None:
    type(world.amber).objects.filter(pk=world.amber.pk).update(time_zone="Europe/Berlin")
    at(world, NOON)


def asked(world: World, **more: Any) -> Approval:
    """An approval with 168 hours to decide."""
    if more:
        in_force(world, rules(review(people=["ada"]), **more))
    give_addresses(world)
    approval = world.approval(world.ask(world.order()))
    tell(world)
    mail.outbox.clear()
    return approval


def test_who_has_not_spoken_is_reminded_once(world: World) -> None:
    """Issue 4, point 1: so many hours before the deadline, by an event and a mail."""
    approval = asked(world, remind=24)
    assert approval.remind_at == approval.deadline_at - timedelta(hours=24)
    assert not reminders.is_anything_due() and not remind(world)
    world.clock(hours=145)
    assert reminders.is_anything_due() and "default" in clock.tick()
    assert remind(world) == 1 and remind(world) == 0 and not reminders.is_anything_due()
    tell(world)
    assert to() == ["ada"] and str(mail.outbox[0].subject).startswith("Still to decide")
    assert world.events(approval.task).count("approval.reminded") == 1 and states("reminder") == {"ada": "sent"}


def test_nobody_is_reminded_of_what_is_decided(world: World) -> None:
    """Lesson: neither by the round nor by a mail that was due already."""
    approval = asked(world, remind=24)
    world.clock(hours=145)
    assert remind(world) == 1
    world.decide(world.ada, approval)
    tell(world)
    assert to() == ["rita"] and not states("reminder")
    second = asked(world)
    world.clock(hours=145)
    world.decide(world.ada, second)
    assert remind(world) == 0 and "approval.reminded" not in world.events(second.task)


def test_reminding_and_deciding_at_the_same_moment(world: World) -> None:
    """Fifty rounds: one event at most, before the decision, and no mail is sent once the decision is in."""
    in_force(world, rules(review(people=["ada"]), remind=24, hours=ALWAYS))
    give_addresses(world)
    order = world.order(10_000_000)
    approvals = [world.approval(world.ask(order)) for _ in range(50)]
    tell(world)
    world.clock(hours=145)
    for approval in approvals:
        answers = together(
            lambda: world.decide(world.ada, approval, "reject", "not plausible"),  # noqa: B023
            lambda: remind(world),
            lambda: send(world),
        )
        assert not [one for one in answers if isinstance(one, RuntimeAppError)]
        said = [e for e in world.events(approval.task) if e in {"approval.reminded", "approval.rejected"}]
        assert said in (["approval.rejected"], ["approval.reminded", "approval.rejected"])
        mail.outbox.clear()
        tell(world)
        about = [one for one in mail.outbox if str(approval.id) in one.body]
        assert not about, [one.subject for one in about]


def test_two_workers_remind_and_escalate_once(world: World) -> None:
    approval = asked(world, remind=24, hours=ALWAYS, escalate=20, escalate_to={"people": ["abel"]})
    world.clock(hours=150)
    done = together(*[lambda: remind(world)] * 4)
    assert sum(done) == 2, done
    events = world.events(approval.task)
    assert events.count("approval.reminded") == events.count("approval.escalated") == 1
    assert Note.objects.filter(approval=approval, kind="escalated").count() == 1
    assert Intent.objects.filter(dedup_key__in=[f"approval.tell:{approval.id}:{what}" for what in (
        "reminder", "escalated")]).count() == 2


def test_an_escalation_lets_more_people_decide_and_tells_them(world: World) -> None:
    """M38: Abel may not decide it until then, and is told when he may."""
    approval = asked(world, escalate=20, escalate_to={"people": ["abel"]})
    with pytest.raises(Forbidden):
        world.decide(world.abel, approval)
    world.clock(hours=149)
    assert remind(world) == 1
    tell(world)
    assert to() == ["abel", "ada"] and states("escalated") == {"ada": "sent", "abel": "sent"}
    approval.refresh_from_db()
    assert approval.escalate_at is None and approval.escalated_at is not None
    world.decide(world.abel, approval)
    approval.refresh_from_db()
    assert approval.state == "approved"


def test_a_reminder_waits_for_working_hours_and_an_escalation_does_not(world: World) -> None:
    """Lesson 23: asked on Tuesday at noon, 136 hours later it is Monday at 4 in the morning in Berlin."""
    approval = asked(world, remind=32, escalate=32, escalate_to={"people": ["abel"]})
    world.clock(hours=136)
    assert remind(world) == 2  # escalated, and the reminder moved
    approval.refresh_from_db()
    assert approval.remind_at == datetime(2027, 6, 7, 7, tzinfo=UTC) and approval.escalated_at is not None
    assert remind(world) == 0 and "approval.reminded" not in world.events(approval.task)
    at(world, datetime(2027, 6, 7, 7, tzinfo=UTC))
    assert remind(world) == 1 and world.events(approval.task).count("approval.reminded") == 1


def test_a_reminder_that_would_come_behind_the_deadline_is_left_out(world: World) -> None:
    approval = asked(world, remind=24, term={"kind": "elapsed", "hours": 110})  # ends on Sunday at 2 in the morning
    world.clock(hours=87)
    assert remind(world) == 1
    approval.refresh_from_db()
    assert approval.remind_at is None and "approval.reminded" not in world.events(approval.task)
    assert not reminders.is_anything_due()


def test_nothing_is_reminded_once_the_time_to_decide_is_over(world: World) -> None:
    """A worker that comes too late finds nothing due, and the clock rings for nothing."""
    approval = asked(world, remind=24, hours=ALWAYS, escalate=12, escalate_to={"people": ["abel"]})
    world.clock(hours=169)
    assert not reminders.is_anything_due() and remind(world) == 0
    assert not {"approval.reminded", "approval.escalated"} & set(world.events(approval.task))


def test_a_reminder_disturbs_neither_a_vote_nor_a_form_that_is_open(world: World) -> None:
    """The task's revision stays: who has the page open decides with it after the reminder."""
    approval = asked(world, remind=24, hours=ALWAYS)
    verbs.claim(world.ada, approval.id)
    world.clock(hours=145)
    assert remind(world) == 1
    world.decide(world.ada, approval)
    assert Approval.objects.get(pk=approval.pk).state == "approved"


def test_the_chain_of_events_holds_the_reminder_with_its_approval(world: World) -> None:
    approval = asked(world, remind=24, hours=ALWAYS)
    world.clock(hours=145)
    remind(world)
    event = Event.objects.get(task=approval.task, type="approval.reminded")
    assert event.actor == "worker:test" and world.said(approval.task, event.type) == {"approval": str(approval.id)}


