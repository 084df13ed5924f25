"""A person's own pages: what the person decided, when the person is away, and how the person is told."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from approvals import absences
from approvals.models import Absence, Preferences
from runtime_app import rows
from runtime_app.models import User
from tests.console.conftest import Visitor
from tests.console.test_policies import plain
from tests.world import World

Visit = Callable[[User | None], Visitor]
MINE, CSV, AWAY, TOLD, ALL = (
    "/mine/", "/mine/decisions.csv", "/mine/absences/", "/mine/preferences/", "/tenants/amber/absences/")


def when(days: float) -> str:
    """So many days from now, as Ada's browser types it."""
    moment = rows.now() + timedelta(days=days)
    return f"{moment.astimezone(ZoneInfo('Europe/Berlin')):%Y-%m-%dT%H:%M}"


def enter(visitor: Visitor, page: str = AWAY, **said: Any) -> Any:
    given = {"starts_at": when(1), "ends_at": when(3), "substitute": "abel", "note": "on holiday"} | said
    return visitor.send(page, visitor.form(page) | given)


def test_my_decisions_are_shown_and_nobody_elses(world: World, visit: Visit) -> None:
    """Page 3: with what became of them; Abel's are not among them."""
    mine, other = world.approval(world.ask(world.order())), world.approval(world.ask(world.order()))
    world.decide(world.ada, mine, "reject", "wrong parcel")
    world.decide(world.abel, other)
    text = plain(visit(world.ada).text(MINE))
    assert mine.task.order_ref in text and "wrong parcel" in text and "Rejected" in text
    assert other.task.order_ref not in text and other.task.order_ref not in visit(world.ada).text(CSV)
    assert "decided nothing here yet" in plain(visit(world.sam).text(MINE))
    assert visit(None).get(MINE).status_code == 302


def test_the_file_holds_text_only(world: World, visit: Visit) -> None:
    """S-class: a reason that a spreadsheet would run is text there; lines and quotes stay in their cell."""
    reasons = ['=HYPERLINK("http://x")', "+1", "-1+2", "@sum", "a\nb, \"c\"", " =1"]
    for reason in reasons:
        asked = world.approval(world.ask(world.order()))
        world.decide(world.ada, asked, "reject", reason)
    answer = visit(world.ada).get(CSV)
    assert answer["Content-Type"].startswith("text/csv") and "no-store" in answer["Cache-Control"]
    told = list(csv.DictReader(io.StringIO(answer.content.decode(), newline="")))
    assert len(told) == len(reasons)
    assert {one["reason"] for one in told} == {"'" + r.strip() for r in reasons[:4]} | {"a\nb, \"c\"", "'=1"}
    assert all(one["amount"] == "60.00" and one["currency"] == "USD" and one["fingerprint"] for one in told)


def test_a_person_enters_an_absence_and_ends_it(world: World, visit: Visit) -> None:
    """Point 5: with a substitute, who sees it; ended by the person, after which nobody stands in."""
    ada, abel = visit(world.ada), visit(world.abel)
    assert enter(ada).status_code == 302
    kept = Absence.objects.get()
    assert (kept.person, kept.substitute, kept.entered_by) == (world.ada, world.abel, world.ada)
    assert "Abel Reed stands in" in plain(ada.text(AWAY)) and "Ada Stone" in plain(abel.text(AWAY))
    end = f"{AWAY}{kept.pk}/end/"
    assert ada.get(end).status_code == 405
    assert abel.send(end, {"csrfmiddlewaretoken": abel.form(AWAY)["csrfmiddlewaretoken"]}).status_code == 404
    assert ada.send(end, ada.form(AWAY, end)).status_code == 302
    assert "No absence is entered" in plain(ada.text(AWAY))
    assert ada.send(end, {"csrfmiddlewaretoken": ada.form(AWAY)["csrfmiddlewaretoken"]}).status_code == 409


@pytest.mark.parametrize(("said", "sentence"), [
    ({"substitute": "ada"}, "Select a valid choice"),
    ({"substitute": "bea"}, "Select a valid choice"),
    ({"substitute": "sam"}, "Select a valid choice"),
    ({"substitute": ""}, "This field is required"),
    ({"ends_at": "2020-01-01T10:00"}, "passed already"),
    ({"starts_at": "tomorrow"}, "Give a day and a time"),
    ({"starts_at": "2027-03-28T02:30", "ends_at": "2027-04-02T10:00"}, "the clocks go forward over it"),
    ({"starts_at": "9999-12-31T23:59"}, "Give a day and a time"),
    ({"note": "x" * 201}, "at most 200"),
    ({"note": "a\x00b"}, "Null characters"),
], ids=str)
def test_what_cannot_be_is_told_beside_its_field(
    world: World, visit: Visit, said: dict[str, Any], sentence: str
) -> None:
    """Bad input: 422, nothing entered, and what was typed is still there."""
    answer = enter(visit(world.ada), **said)
    assert answer.status_code == 422 and sentence in plain(answer.content.decode()), plain(answer.content.decode())
    assert not Absence.objects.exists()


def test_administrators_enter_and_end_absences_of_others(world: World, visit: Visit) -> None:
    tom = visit(world.tom)
    assert enter(tom, ALL, person="bea").status_code == 422
    assert enter(tom, ALL, person="ada").status_code == 302
    kept = Absence.objects.get()
    assert kept.entered_by == world.tom and "Ada Stone" in plain(tom.text(ALL))
    end = f"{AWAY}{kept.pk}/end/"
    assert tom.send(end, tom.form(ALL, end)).status_code == 302
    assert absences.own(world.ada, world.amber) == []
    for person, status in ((world.ada, 403), (world.ava, 403), (world.bea, 404)):
        assert visit(person).get(ALL).status_code == status


def test_preferences_are_kept_and_checked(world: World, visit: Visit) -> None:
    """Page 3: notification settings and time zone."""
    ada = visit(world.ada)

    def send(**said: str) -> Any:
        return ada.send(TOLD, ada.form(TOLD) | {"digest": "daily", "quiet_from": "22:00", "quiet_to": "07:00",
                                                "time_zone": "Asia/Tokyo"} | said)

    assert send().status_code == 302
    kept = Preferences.objects.get(person=world.ada)
    assert (kept.mail, kept.digest, f"{kept.quiet_from:%H:%M}") == (False, "daily", "22:00")
    assert User.objects.get(pk=world.ada.pk).time_zone == "Asia/Tokyo"
    assert "Times in Asia/Tokyo" in plain(ada.text(TOLD))
    for said, sentence in (
        ({"quiet_to": ""}, "Give both ends"), ({"quiet_from": ""}, "Give both ends"),
        ({"quiet_to": "22:00"}, "another time"), ({"digest": "never"}, "Select a valid choice"),
        ({"time_zone": "Mars/Base"}, "no such time zone"), ({"quiet_from": "25:00"}, "Enter a valid time"),
    ):
        answer = send(**said)
        assert answer.status_code == 422 and sentence in plain(answer.content.decode()), said
    assert Preferences.objects.get().digest == "daily"


def test_a_person_who_decides_nothing_has_preferences_all_the_same(world: World, visit: Visit) -> None:
    rita = visit(world.rita)
    assert rita.get(MINE).status_code == 200 and rita.get(TOLD).status_code == 200
    assert CSV not in rita.text(MINE) and len(rita.text(CSV).splitlines()) == 1
