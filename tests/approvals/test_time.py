"""How long people have, from the request to the refusal: in the tenant's zone, over both changes of its clocks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db.models import F

from approvals.models import Approval, Decision
from approvals.places import rules_of
from approvals.votes import Asked, CastVote
from runtime_app import rows
from runtime_app.errors import Expired
from runtime_app.models import RuntimeClock, Task, Tenant
from runtime_app.states import Status
from runtime_app.transitions import Locked
from tests.api.web_process import database_url
from tests.approvals.test_policies import in_force, review, rules
from tests.sandbox_process import ROOT
from tests.world import QUICK, World

DAY: dict[str, Any] = {"kind": "elapsed", "hours": 24}
TODAY: dict[str, Any] = {"kind": "end_of_day", "days": 0, "working_days": False}
TOMORROW: dict[str, Any] = TODAY | {"days": 1}
WORKED: dict[str, Any] = {"kind": "working", "hours": 8}
# Berlin's clocks go forward on 28 March 2027 at 2:00, and back on 31 October 2027 at 3:00. All times are UTC.
CASES = [
    (DAY, "2027-03-27T11:00", "2027-03-28T11:00"),
    (DAY, "2027-10-30T11:00", "2027-10-31T11:00"),
    (TOMORROW, "2027-03-27T11:00", "2027-03-28T22:00"),
    (TOMORROW, "2027-10-30T11:00", "2027-10-31T23:00"),
    (TODAY, "2027-03-27T23:30", "2027-03-28T22:00"),  # half past midnight of the day with 23 hours
    (TODAY, "2027-10-30T22:30", "2027-10-31T23:00"),  # and of the one with 25
    (WORKED, "2027-03-26T15:00", "2027-03-29T14:00"),  # Friday at 16:00 to Monday at 16:00, on other clocks
    (WORKED, "2027-10-29T14:00", "2027-11-01T15:00"),
]


def be_at(moment: datetime) -> None:
    RuntimeClock.objects.filter(id=1).update(advanced=F("advanced") + (moment - rows.now()))


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def asked_at(world: World, term: dict[str, Any], moment: datetime) -> Approval:
    Tenant.objects.filter(pk=world.amber.pk).update(time_zone="Europe/Berlin")
    be_at(moment - timedelta(minutes=1))
    in_force(world, rules(review(), term=term))
    be_at(moment)
    return world.approval(world.ask(world.order()))


@pytest.mark.parametrize(("term", "asked", "ends"), CASES)
def test_a_deadline_is_kept_over_the_change_of_clocks(
    world: World, term: dict[str, Any], asked: str, ends: str
) -> None:
    """C16, M38: an hour more or less on the wall is none in the count; a day ends where the tenant's day ends."""
    first = asked_at(world, term, utc(asked))
    late = first.asked_at - utc(asked)
    expected = utc(ends) + (late if term["kind"] != "end_of_day" else timedelta(0))
    assert timedelta(0) <= late < timedelta(minutes=5) and abs(first.deadline_at - expected) < timedelta(seconds=1)
    be_at(first.deadline_at - timedelta(seconds=60))
    world.work()
    assert Approval.objects.get(pk=first.pk).state == "open", "nobody sweeps it before"
    be_at(first.deadline_at + timedelta(seconds=1))
    with pytest.raises(Expired) as refused:
        world.decide(world.ada, first)
    assert f"{first.deadline_at:%Y-%m-%d %H:%M} UTC" in refused.value.message
    assert not Decision.objects.exists()
    world.finish(first.task)
    assert (first.task.status, world.effects(first.task.order_ref)) == ("rejected", [])
    assert Approval.objects.get(pk=first.pk).state == "expired"


def test_a_second_before_the_deadline_it_is_decided_and_a_second_after_it_not(world: World) -> None:
    """C16: by the database's clock at the moment of deciding, whether or not anybody has swept. A round whose own
    second was used up by a slow machine is told as such and repeated."""
    in_force(world, rules(review(), term=DAY))
    for _ in range(20):
        asked = world.approval(world.ask(world.order()))
        be_at(asked.deadline_at - timedelta(seconds=1))
        try:
            world.decide(world.ada, asked)
            break
        except Expired:
            assert rows.now() >= asked.deadline_at
    given = Decision.objects.get()
    assert given.approval_id == asked.id
    assert asked.deadline_at - timedelta(seconds=1) <= given.decided_at < asked.deadline_at
    world.finish(asked.task)
    late = world.approval(world.ask(world.order()))
    be_at(late.deadline_at + timedelta(seconds=1))
    with pytest.raises(Expired):
        world.decide(world.abel, late)


@pytest.mark.parametrize(("seconds", "refused"), [(-1, None), (-1e-6, None), (0, "expired"), (1, "expired")])
def test_the_deadline_itself_is_too_late(world: World, seconds: float, refused: str | None) -> None:
    """C16: before it counts, at it does not; told of the very instant, which no test meets on a running clock."""
    asked = world.approval(world.ask(world.order()))
    vote = CastVote(
        asked.id, world.ada.pk, "approve", "", "n" * 32, asked.fingerprint, {}, completes=True, review="approval"
    )
    stands = Asked("open", asked.deadline_at, asked.fingerprint, rules_of(asked), (), frozenset(), frozenset())
    row = Locked(
        asked.task_id, asked.tenant_id, asked.task.revision, Status.WAITING_APPROVAL, 0, 0, b"", False,
        asked.deadline_at, {},
    )
    found = vote._judge(replace(row, now=asked.deadline_at + timedelta(seconds=seconds)), stands)
    assert (found.code if found else None) == refused


@pytest.mark.parametrize("zone", ["Pacific/Apia", "America/St_Johns"])
def test_the_zone_of_the_host_changes_no_deadline(world: World, zone: str) -> None:
    """Done when, lesson 20: a worker on a host on the other side of the date line asks until the same instant."""
    here = asked_at(world, TODAY, utc("2027-03-27T23:30"))
    task = world.ask(world.order())
    environment = {
        **os.environ, "TZ": zone, "DATABASE_URL": database_url(), "COUNTERSIGN_TIMING": json.dumps(QUICK),
        "DJANGO_SETTINGS_MODULE": "config.settings",
    }
    code = (
        "import time, django; print(time.tzname[0]); django.setup()\n"
        "from runtime_app import jobs; jobs.advance()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.strip() not in {"UTC", "CET", ""}, "the host is in another zone"
    there = Approval.objects.get(task=task, state="open")
    assert there.deadline_at == here.deadline_at == utc("2027-03-28T22:00")
    world.decide(world.ada, Approval.objects.select_related("task").get(pk=there.pk))
    assert Task.objects.get(pk=task.pk).status == "ready"
