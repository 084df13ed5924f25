"""The story's words and times, and that every text of a page can be translated."""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.utils import timezone

from approvals.models.delivery import STATES, WHATS
from runtime_app import tasks
from runtime_app.console import moments, news, outlook, story, tags, timeline, words
from runtime_app.errors import Conflict
from runtime_app.events import TYPES
from runtime_app.models import Task, User
from runtime_app.reconciliation.classes import CLASSES
from runtime_app.reconciliation.table import Finding
from runtime_app.states import OperationState, Parked, Status
from tests.approvals.telling import give_addresses, relay, tell
from tests.console.conftest import Visitor
from tests.world import World

Visit = Callable[[User | None], Visitor]


def test_every_event_finding_case_and_state_has_its_words() -> None:
    """M39: nothing that can be recorded is told as a code."""
    assert set(TYPES) == set(story.STORY)
    assert {f.value for f in Finding} <= set(story.FINDINGS)
    assert {f.value for f in Finding} <= set(words.RESULT)
    assert set(CLASSES) == set(story.CASES) == set(words.CASE)
    assert {known.severity for known in CLASSES.values()} <= set(words.SEVERITY)
    assert set(Status) == set(words.STATUS) and set(OperationState) == set(words.OPERATION)
    assert set(Parked) == set(words.PARKED)
    shapes = {"waiting", "moving", "doubt", "done", "crossed", "note"}
    icons = (Path(settings.BASE_DIR) / "runtime_app/static/console/icons.svg").read_text()
    assert {t.shape for t in story.STORY.values()} <= shapes
    assert all(f'id="{shape}"' in icons for shape in shapes)


def test_an_event_whose_payload_is_pruned_still_reads_as_a_sentence() -> None:
    """M14: retention may take the payload; the story keeps its sentence."""
    for type, telling in story.STORY.items():
        sentence = telling.sentence({"who": "Rita Moss"})
        assert sentence and "%(" not in sentence and "None" not in sentence, type


def test_every_state_says_what_happens_next(world: World) -> None:
    """Console page 5: what, and for a wait also who must act, also without an operation or approval to look at."""
    task = world.ask(world.order(), 6000)
    for status in Status:
        for parked in (None, *Parked):
            seen = Task(id=task.id, tenant=world.amber, status=status, parked_reason=parked)
            next_up = outlook.outlook(seen, None, None)
            assert next_up.what and (next_up.over or next_up.who or status == Status.WAITING_APPROVAL), (status, parked)


@pytest.mark.parametrize(
    "seconds, said",
    [(-5, "0 s"), (0, "0 s"), (0.25, "250 ms"), (59.9, "59 s"), (60, "1 min"), (3599, "59 min 59 s"),
     (7260, "2 h 1 min"), (187_200, "2 d 4 h"), (86_400 * 400, "400 d")],
)  # fmt: skip
def test_a_duration_is_two_units_and_never_negative(seconds: float, said: str) -> None:
    """Lesson: two clocks may disagree, and no page says so with a minus."""
    assert moments.as_duration(timedelta(seconds=seconds)) == said


def test_times_are_told_in_the_readers_zone_with_its_offset_and_utc_beside() -> None:
    """Lessons 21 and 22, M26 of the measured list: also across a change of the clocks."""
    summer, winter = datetime(2026, 10, 25, 0, 30, tzinfo=UTC), datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
    with timezone.override(zoneinfo.ZoneInfo("Europe/Berlin")):
        first, second = moments.as_moment(summer), moments.as_moment(winter)
        assert "02:30" in first and "+02:00" in first and 'title="2026-10-25T00:30:00Z"' in first
        assert "02:30" in second and "+01:00" in second
    with timezone.override(zoneinfo.ZoneInfo("Asia/Kolkata")):
        assert moments.offset(summer) == "+05:30"
    with timezone.override(zoneinfo.ZoneInfo("UTC")):
        assert moments.offset(summer) == "UTC"


def test_the_readers_zone_is_the_persons_then_the_browsers(world: World, visit: Visit) -> None:
    """A zone that is none counts as none."""
    rita = visit(world.rita)
    assert "Times in Europe/Berlin" in rita.text("/tasks/")
    User.objects.filter(pk=world.rita.pk).update(time_zone="")
    rita.client.cookies["tz"] = "America%2FNew_York"
    assert "Times in America/New_York" in rita.text("/tasks/")
    rita.client.cookies["tz"] = "Nowhere/Else"
    assert "Times in UTC" in rita.text("/tasks/")


def test_a_wait_is_shown_as_a_gap_and_counted_as_time_outside(world: World, visit: Visit) -> None:
    """Look: gaps are gaps, by the database's clock; M32: queue, work and waiting for people apart."""
    task = world.ask(world.order(), 6000)
    asked = world.approval(task)
    world.clock(days=2, hours=4)
    world.decide(world.ada, asked)
    world.finish(task)
    text = visit(world.sam).text(f"/tasks/{task.id}/")
    assert "waited 2 d 4 h for an approver" in text
    told = timeline.read(task)
    split = timeline.split(told, [], told[-1].event.at, over=True)
    assert split is not None and 187_200 <= split.outside <= split.total < 187_300
    assert len(timeline.tell(task, told)) == 2


def test_a_request_through_an_application_names_the_person_behind_it(world: World, visit: Visit) -> None:
    """M22: who caused it is told with what passed it on."""
    order = world.order()
    asked = tasks.Request("refund", order, amount_minor=100, currency="USD", on_behalf_of="rita")
    task = tasks.create(world.account, world.amber, asked, request_key="from-the-shop").task
    text = visit(world.sam).text(f"/tasks/{task.id}/")
    assert f"Rita Moss, through shop, asked for a refund of 1.00 USD on order {order}." in text


@pytest.mark.parametrize(
    "minor, currency, said",
    [(4821, "EUR", "48.21 EUR"), (123456789, "USD", "1,234,567.89 USD"), (500, "JPY", "500 JPY"),
     (1250, "KWD", "1.250 KWD"), (1234567, "HUF", "12,345.67 HUF"), (1, "IQD", "0.001 IQD"),
     (10**15, "USD", "10,000,000,000,000.00 USD")],
)  # fmt: skip
def test_money_is_shown_exactly_with_its_code(minor: int, currency: str, said: str) -> None:
    """C41, console rule 9: never rounded, the currency's own decimals."""
    assert tags.money_words(minor, currency) == said


def test_what_cannot_be_seen_is_shown_escaped() -> None:
    """C46: two references that look alike are told apart."""
    assert tags.printable("ORD\u200b-1") == "ORD\\u200b-1" and tags.printable("a\u202eb") == "a\\u202eb"


def test_a_conflict_says_its_sentence_and_a_refusal_tells_nothing_more(world: World, visit: Visit) -> None:
    """Look: refused states are designed, in words."""
    task = world.ask(world.order(), 100)
    rita = visit(world.rita)
    page = f"/tasks/{task.id}/"
    cancel = rita.form(page, f"{page}cancel/")
    world.finish(task)
    lost = rita.send(f"{page}cancel/", {**cancel, "cancel-reason": "late"})
    assert lost.status_code == 409 and b"already ended" in lost.content
    assert (Conflict.__doc__ or "").strip().encode() not in lost.content


TEMPLATES = sorted((Path(settings.BASE_DIR) / "templates").rglob("*.html"))
# What is no text: marked text, the class of the main column, keys and what is typed, tags and variables.
_TAG = re.compile(
    r"{%\s*blocktranslate.*?endblocktranslate\s*%}|<kbd>.*?</kbd>|<code>.*?</code>"
    r"|{% block main_class %}.*?{% endblock %}|{%.*?%}|{{.*?}}", re.S
)
_NAMES = {"Countersign", "doctype", "html", "Enter", "Esc", "HTTP", "ms", "j", "k", "403", "409", "500"}


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda p: p.name)
def test_every_text_of_a_template_can_be_translated(path: Path) -> None:
    """Console rule 13: strings are marked from the first template."""
    text = _TAG.sub(" ", path.read_text())
    spoken = [*re.findall(r">([^<]*)<", f">{text}<"), *re.findall(r'(?:title|placeholder|aria-label)="([^"]*)"', text)]
    found = {word for piece in spoken for word in re.findall(r"[A-Za-z]+", re.sub(r"&\w+;", " ", piece))}
    assert not found - _NAMES


def test_the_story_tells_who_heard_of_it_in_its_place(world: World, visit: Visit) -> None:
    """Issue 4, point 6: each delivery is visible on the timeline, those who heard the same at once in one line."""
    give_addresses(world)
    task = world.ask(world.order(), 6000)
    asked = world.approval(task)
    tell(world)
    world.clock(hours=2)
    world.decide(world.ada, asked, "reject", "not plausible")
    relay()
    User.objects.filter(pk=world.rita.pk).update(email="")
    tell(world)
    days = timeline.tell(task, timeline.read(task), news.lines(task))
    said = [line.sentence or line.gap for day in days for line in day.lines]
    heard = said.index("Abel Reed and Ada Stone heard by mail that it is to be decided.")
    assert said[heard + 1] == "waited 2 h for an approver" and said[heard + 2] == "Ada Stone rejected it."
    assert said[-1] == "Rita Moss did not have to hear of it by mail any more."
    assert "heard by mail" in visit(world.sam).text(f"/tasks/{task.id}/")


def test_every_delivery_has_its_words() -> None:
    """M39: also what could not be told, in every state that a delivery can have."""
    assert set(news.SENT) == set(WHATS) and {"sent", *news.NOT_SENT} == set(STATES)
    for words_of in (*news.SENT.values(), *(sentence for _, sentence in news.NOT_SENT.values())):
        assert "%(who)s" in str(words_of) and "%(how)s" in str(words_of)
