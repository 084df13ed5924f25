"""When people are told: digests and quiet hours in each person's own zone, also where clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, time

import pytest
from django.core import mail

from approvals.models import Delivery, Preferences
from approvals.telling.moments import after_quiet, first, zone_of
from tests.approvals.telling import give_addresses, relay, tell, wish
from tests.approvals.test_telling import asked, at
from tests.world import World

NIGHT = {"quiet_from": time(22), "quiet_to": time(2, 30)}
BERLIN = "Europe/Berlin"


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(("wishes", "zone", "moment", "told"), [
    ({}, BERLIN, "2027-06-01T23:30", "2027-06-01T23:30"),
    ({"quiet_from": time(22), "quiet_to": time(7)}, BERLIN, "2027-06-01T19:59", "2027-06-01T19:59"),
    ({"quiet_from": time(22), "quiet_to": time(7)}, BERLIN, "2027-06-01T20:00", "2027-06-02T05:00"),
    ({"quiet_from": time(22), "quiet_to": time(7)}, BERLIN, "2027-06-02T05:00", "2027-06-02T05:00"),
    ({"quiet_from": time(12), "quiet_to": time(14)}, BERLIN, "2027-06-01T10:30", "2027-06-01T12:00"),
    ({"quiet_from": time(12), "quiet_to": time(14)}, BERLIN, "2027-06-01T12:00", "2027-06-01T12:00"),
    ({"quiet_from": time(0), "quiet_to": time(6)}, BERLIN, "2027-06-01T22:00", "2027-06-02T04:00"),
    ({"quiet_from": time(22), "quiet_to": time(0)}, BERLIN, "2027-06-01T20:30", "2027-06-01T22:00"),
    # On 28 March 2027 there is no 2:30 in Berlin: people are told at the first instant after, 3:00 there.
    (NIGHT, BERLIN, "2027-03-27T22:00", "2027-03-28T01:00"),
    # On 31 October 2027 there are two of them: the first one ends the night.
    (NIGHT, BERLIN, "2027-10-30T22:00", "2027-10-31T00:30"),
    ({"digest": "hourly"}, BERLIN, "2027-06-01T10:00", "2027-06-01T10:00"),
    ({"digest": "hourly"}, BERLIN, "2027-06-01T10:01", "2027-06-01T11:00"),
    ({"digest": "hourly"}, "Asia/Kolkata", "2027-06-01T10:01", "2027-06-01T10:30"),
    ({"digest": "daily"}, BERLIN, "2027-06-01T05:59", "2027-06-01T06:00"),
    ({"digest": "daily"}, BERLIN, "2027-06-01T06:01", "2027-06-02T06:00"),
    ({"digest": "daily"}, BERLIN, "2027-03-27T12:00", "2027-03-28T06:00"),  # 23 hours after the one before
    ({"digest": "daily", "quiet_from": time(22), "quiet_to": time(9)}, BERLIN, "2027-06-01T06:01", "2027-06-02T07:00"),
])
def test_the_moment_at_which_a_person_is_told(
    wishes: dict[str, object], zone: str, moment: str, told: str
) -> None:
    """Done when: time. Digests come with the person's own hours and mornings, and quiet hours end as the clocks say."""
    assert first(utc(moment), Preferences(**wishes), zone) == utc(told)


def test_quiet_hours_without_an_end_or_of_no_length_hold_back_nothing() -> None:
    moment = utc("2027-06-01T23:30")
    assert after_quiet(moment, Preferences(quiet_from=time(22), quiet_to=time(22)), BERLIN) == moment


def test_a_zone_that_is_none_falls_back_to_the_tenants() -> None:
    assert zone_of("", BERLIN) == BERLIN and zone_of("Nowhere/Town", "localtime") == "UTC"


def test_nobody_is_told_at_night_and_everybody_at_its_end(world: World) -> None:
    """Also over the night in which the hour of its end does not exist (28 March 2027 in Berlin)."""
    give_addresses(world)
    for person in (world.ada, world.abel):
        wish(person, **NIGHT)
    at(world, utc("2027-03-27T22:00"))
    asked(world)
    tell(world)
    assert not mail.outbox and {one.due_at for one in Delivery.objects.all()} == {utc("2027-03-28T01:00")}
    at(world, utc("2027-03-28T00:59"))
    tell(world)
    assert not mail.outbox
    at(world, utc("2027-03-28T01:00"))
    tell(world)
    assert len(mail.outbox) == 2


def test_quiet_hours_that_begin_while_it_waits_hold_it_back_too(world: World) -> None:
    """A delivery that was tried in vain is due again at night: that is no try, and it comes in the morning."""
    give_addresses(world)
    at(world, utc("2027-06-01T12:00"))
    asked(world)
    wish(world.abel, mail=False)
    wish(world.ada, **NIGHT)
    relay()
    at(world, utc("2027-06-01T21:00"))
    tell(world)
    waiting = Delivery.objects.get(person=world.ada)
    assert not mail.outbox and (waiting.state, waiting.tries, waiting.due_at) == ("waiting", 0, utc("2027-06-02T00:30"))
