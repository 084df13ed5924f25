"""The policy's pages: read, written, agreed to by a second person, tried; and the teams that it names."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest

from approvals import policies
from approvals.models import Policy, Team
from runtime_app import members
from runtime_app.models import User
from tests.approvals.test_policies import in_force, review, rules, team
from tests.console.conftest import Visitor
from tests.world import PASSWORD, World

Visit = Callable[[User | None], Visitor]
PAGE, NEW, TRY, TEAMS = (f"/tenants/amber/{name}/" for name in ("policies", "policies/new", "policies/try", "teams"))
DRAFT: dict[str, Any] = {
    "reviews.0.name": "finance", "reviews.0.quorum": "1", "reviews.0.above.0.currency": "USD",
    "reviews.0.above.0.amount": "30.00", "reviews.0.above.any": "5000", "reviews.0.who.roles.0.name": "approver",
    "reviews.0.who.roles.0.up_to.any": "", "order": "in_parallel", "term.kind": "elapsed", "term.hours": "24",
    "term.days": "0", "hours.days": ["0", "1", "2", "3", "4"], "hours.opens": "09:00", "hours.closes": "17:00",
    "hours.holidays": "", "remind": "0", "escalate": "0", "escalate_to.roles.0.name": "",
    "escalate_to.roles.0.up_to.any": "", "password_above.any": "", "bulk_up_to.any": "", "forbidden_above.any": "",
    "why": "smaller amounts too", "do": "propose",
}


def plain(text: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", text)).split())


def propose(visitor: Visitor, **changed: Any) -> Any:
    """Send the editor's form; a value of None is a field that is not there."""
    said = visitor.form(NEW) | DRAFT | {name.replace("__", "."): value for name, value in changed.items()}
    return visitor.send(NEW, {name: value for name, value in said.items() if value is not None})


@pytest.fixture
def tessa(world: World) -> User:
    return members.add_person(world.amber, "tessa", PASSWORD, ["tenant_admin"], full_name="Tessa Moor")


def test_a_policy_is_written_read_as_a_difference_and_agreed_to_by_another_admin(
    world: World, visit: Visit, tessa: User
) -> None:
    """Page 13, M38: proposed at the form, shown then and now, in force only with the second person's word."""
    tom, second = visit(world.tom), visit(tessa)
    assert "built in, until the first version is agreed to" in tom.text(PAGE)
    assert propose(tom).status_code == 302
    proposed = Policy.objects.get()
    assert proposed.rules["reviews"][0]["above"] == {"USD": 3000, "*": 5000}
    text = plain(tom.text(PAGE))
    assert "Proposed: version 2" in text and "somebody else must agree to it: Tessa Moor" in text
    assert f"{PAGE}{proposed.pk}/agree/" not in tom.text(PAGE)
    shown = plain(second.text(PAGE))
    assert "smaller amounts too" in shown and "above 30.00 USD" in shown and "24 hours" in shown
    assert "changed" in shown and "168 hours" in shown
    agree = f"{PAGE}{proposed.pk}/agree/"
    assert second.send(agree, second.form(PAGE, agree)).status_code == 302
    text = plain(second.text(PAGE))
    assert "In force: version 2" in text and "proposed by Tom Hill, agreed to by Tessa Moor" in text
    assert "smaller amounts too" in plain(second.text(f"{PAGE}{proposed.pk}/"))


@pytest.mark.parametrize(("changed", "field", "sentence"), [
    ({"reviews.0.quorum": "3"}, "reviews.0.quorum", "one person is missing"),
    ({"reviews.0.quorum": "0"}, "reviews.0.quorum", "greater than or equal to 1"),
    ({"reviews.0.quorum": ""}, "reviews.0.quorum", "required"),
    ({"reviews.0.name": "Risk!"}, "reviews.0.name", "Use small letters"),
    ({"reviews.0.above.0.amount": "30.001"}, "reviews.0.above.0.amount", "digits only"),
    ({"reviews.0.above.0.amount": ""}, "reviews.0.above.0.amount", "digits only"),
    ({"reviews.0.above.0.currency": "usd"}, "reviews.0.above.0.currency", "in capitals"),
    ({"reviews.0.above.any": "50.00"}, "reviews.0.above.any", "whole number of minor units"),
    ({"reviews.0.above.any": "9" * 17}, "reviews.0.above.any", "whole number of minor units"),
    ({"reviews.0.who.roles.0.name": ""}, "reviews.0.who.anyone", "Say who may decide"),
    ({"reviews.0.who.roles.0.name": "king"}, "reviews.0.who.roles.0.name", "Select a valid choice"),
    ({"reviews.0.who.teams": ["risk"]}, "reviews.0.who.teams", "Select a valid choice"),
    ({"reviews.0.who.people": ["bea"]}, "reviews.0.who.people", "Select a valid choice"),
    ({"reviews.0.who.roles.0.up_to.any": "9000"}, "reviews.0.quorum", "missing"),
    ({"term.hours": "0"}, "term.hours", "leaves nobody time"),
    ({"term.hours": "nan"}, "term.hours", "Enter a number"),
    ({"term.kind": "soon"}, "term.kind", "Select a valid choice"),
    ({"term.kind": "end_of_day", "term.days": "400"}, "term.days", "less than or equal to 366"),
    ({"hours.days": []}, "hours.days", "at least one working day"),
    ({"hours.opens": "18:00"}, "hours.closes", "close after it opens"),
    ({"hours.opens": "nine"}, "hours.opens", "Use the form 09:00"),
    ({"hours.holidays": "2026-12-25\nxmas"}, "hours.holidays", "2026-12-25"),
    ({"remind": "-1"}, "remind", "Use a number from 0"),
    ({"escalate": "2"}, "escalate_to.anyone", "neither"),
    ({"forbidden_above.any": "x"}, "forbidden_above.any", "whole number"),
    ({"why": ""}, "why", "the second person reads this"),
    ({"why": "a\u202eb"}, "why", "invisible characters"),
    ({"why": "x" * 501}, "why", "at most 500"),
], ids=str)
def test_what_is_refused_stands_beside_its_field_and_nothing_is_lost(
    world: World, visit: Visit, changed: dict[str, Any], field: str, sentence: str
) -> None:
    """Bad input of issue 4: an unsatisfiable policy, a quorum over the people, a deadline that has passed."""
    tom = visit(world.tom)
    answer = tom.send(NEW, tom.form(NEW) | DRAFT | changed)
    text = answer.content.decode()
    assert answer.status_code == 422 and not Policy.objects.exists()
    beside = re.search(rf'id="id_{re.escape(field)}_error">(.*?)</p>', text, re.S) or re.search(
        rf'name="{re.escape(field)}".*?class="wrong">(.*?)</p>', text, re.S)
    assert beside is not None and sentence in plain(beside.group(1)), plain(text)
    assert "remind" in changed or 'value="30.00"' in text or "reviews.0.above.0.amount" in changed


def test_rows_are_added_and_left_out_and_everything_else_stays(world: World, visit: Visit) -> None:
    """It works without scripts: buttons of the form itself, and nothing is proposed by them."""
    tom = visit(world.tom)
    said = tom.form(NEW) | DRAFT | {"why": "half <written>"}
    del said["do"]

    def press(**button: str) -> str:
        answer = tom.send(NEW, said | button)
        assert answer.status_code == 200
        return str(answer.content.decode())

    text = press(add="reviews")
    assert 'name="reviews.1.name"' in text and 'value="30.00"' in text and "half &lt;written&gt;" in text
    assert 'name="reviews.0.above.1.currency"' in press(add="reviews.0.above")
    assert 'name="reviews.0.who.roles.1.name"' in press(add="reviews.0.who.roles")
    assert 'name="reviews.0.who.roles.0.up_to.0.currency"' in press(add="reviews.0.who.roles.0.up_to")
    assert 'name="bulk_up_to.0.currency"' in press(add="bulk_up_to")
    for odd in ("reviews.9.above", "why", "../x", "x" * 500, "reviews.0.who"):
        assert 'name="reviews.1.name"' not in press(add=odd)
    said |= {name.replace("reviews.0", "reviews.1"): value for name, value in DRAFT.items() if "reviews.0" in name}
    said["reviews.1.name"] = "second"
    text = press(drop="0")
    assert 'value="second"' in text and 'name="reviews.1.name"' not in text
    assert press(drop="7").count('value="second"') == 1
    assert not Policy.objects.exists()


def test_a_draft_is_looked_over_before_it_is_proposed(world: World, visit: Visit) -> None:
    """The softer warning: whoever is needed by name is told, and nothing is stored."""
    team(world, "risk", world.ada)
    tom = visit(world.tom)
    said = tom.form(NEW) | DRAFT | {"do": "check", "why": "", "reviews.0.who.roles.0.name": "",
                                    "reviews.0.who.teams": ["risk"]}
    text = plain(tom.send(NEW, said).content.decode())
    assert "What would change" in text and "Nothing is proposed yet." in text
    assert "cannot be met: Ada Stone" in text and not Policy.objects.exists()


def test_a_full_policy_comes_back_as_it_was_written(world: World, visit: Visit, tessa: User) -> None:
    team(world, "risk", world.ada)
    changed = {
        "reviews.0.above.0.currency": "JPY", "reviews.0.above.0.amount": "500", "reviews.0.who.teams": ["risk"],
        "reviews.0.who.people": ["abel"], "reviews.0.who.roles.0.up_to.0.currency": "USD",
        "reviews.0.who.roles.0.up_to.0.amount": "0", "term.kind": "end_of_day", "term.days": "2",
        "term.working_days": "on", "hours.closes": "00:00", "hours.holidays": "2026-12-25 2027-01-01", "remind": "4.5",
        "escalate": "1", "escalate_to.people": ["abel"], "password_above.0.currency": "USD",
        "password_above.0.amount": "500.5", "bulk_up_to.any": "2000", "forbidden_above.any": "900000",
    }
    tom = visit(world.tom)
    assert tom.send(NEW, tom.form(NEW) | DRAFT | changed).status_code == 302
    kept = Policy.objects.get()
    assert kept.rules["reviews"][0]["above"] == {"JPY": 500, "*": 5000}
    assert kept.rules["reviews"][0]["who"]["roles"] == [{"name": "approver", "up_to": {"USD": 0}}]
    assert kept.rules["password_above"] == {"USD": 50050} and kept.rules["hours"]["closes"].startswith("23:59:59")
    policies.agree(tessa, kept.id)
    again = tom.form(NEW)
    text = tom.text(NEW)
    for shown in ('value="500.50"', 'value="4.5"', "2027-01-01", 'value="00:00"', 'value="0.00"'):
        assert shown in text, shown
    assert again["base"] == "2"
    line = plain(tom.text(PAGE))
    assert "until the end of the day, 2 working days later" in line and "Mon to Fri, 09:00 to 24:00" in line


def test_a_form_for_another_version_or_a_decided_one_does_nothing(world: World, visit: Visit, tessa: User) -> None:
    """Lesson 28: what was seen is in the form; GET and HEAD decide nothing; strangers see none."""
    tom, second = visit(world.tom), visit(tessa)
    propose(tom)
    first = Policy.objects.get()
    agree, refuse = f"{PAGE}{first.pk}/agree/", f"{PAGE}{first.pk}/refuse/"
    form = second.form(PAGE, agree)
    assert second.get(agree).status_code == 405 and second.client.head(agree).status_code == 405
    for number in ("", "1", "3", "x", "9" * 30):
        assert second.send(agree, form | {"number": number}).status_code == 409
    own = {"csrfmiddlewaretoken": tom.form(PAGE, refuse)["csrfmiddlewaretoken"]}
    assert tom.send(agree, form | own).status_code == 403
    for person, status in ((world.bea, 404), (world.ada, 403), (world.ava, 403)):
        other = visit(person)
        token = {"csrfmiddlewaretoken": other.form("/tasks/", "/accounts/logout/")["csrfmiddlewaretoken"]}
        assert other.send(agree, form | token).status_code == status
    answer = second.send(refuse, second.form(PAGE, refuse))
    assert answer.status_code == 422 and "Say why it is refused." in answer.content.decode()
    assert tom.send(refuse, tom.form(PAGE, refuse)).status_code == 302
    lost = second.send(agree, form)
    assert lost.status_code == 409 and "withdrawn already by Tom Hill" in plain(lost.content.decode())
    assert Policy.objects.get().state == "withdrawn"


def test_a_draft_of_a_version_that_was_replaced_is_not_proposed(world: World, visit: Visit) -> None:
    """The form carries the version it was made from; whoever is late begins from the newer one."""
    tom = visit(world.tom)
    form = tom.form(NEW)
    in_force(world, rules(review()))
    answer = tom.send(NEW, form | DRAFT)
    assert answer.status_code == 409 and "Another version came in force" in plain(answer.content.decode())
    assert tom.send(NEW, DRAFT | {"csrfmiddlewaretoken": form["csrfmiddlewaretoken"]}).status_code == 409
    assert propose(tom).status_code == 302
    assert propose(visit(User.objects.get(username="tessa"))).status_code == 409


def test_who_may_read_policies_and_who_may_change_them(world: World, visit: Visit) -> None:
    ava = visit(world.ava)
    assert "Propose a change" not in ava.text(PAGE) and ava.get(NEW).status_code == 403
    assert ava.get(TRY).status_code == 200 and ava.get(TEAMS).status_code == 403
    for path in (PAGE, NEW, TRY, TEAMS):
        assert visit(world.ada).get(path).status_code == 403
        assert visit(world.bea).get(path).status_code == 404


def test_a_single_administrator_is_told_the_way_out(world: World, visit: Visit, tessa: User) -> None:
    """Four eyes with one pair of eyes: said on the page, with the command that makes a second administrator."""
    User.objects.filter(pk=tessa.pk).update(is_active=False)
    text = plain(visit(world.tom).text(PAGE))
    assert "You are the only administrator" in text and "manage.py give_role amber USERNAME tenant_admin" in text
    User.objects.filter(pk=tessa.pk).update(is_active=True)
    assert "You are the only administrator" not in visit(world.tom).text(PAGE)


def test_rules_that_nobody_can_meet_are_told_loudly(world: World, visit: Visit) -> None:
    """Lesson 13: on the policy's page and on the start page of administrators, with what waits in vain."""
    team(world, "risk", world.ada)
    in_force(world, rules(review("risk", teams=["risk"])))
    asked = world.approval(world.ask(world.order()))
    tom = visit(world.tom)
    assert "Nobody can meet" not in tom.text("/") and "cannot be met: Ada Stone" in plain(tom.text(PAGE))
    members.take_role(world.ada, world.amber, "approver")
    assert "With the people of today nobody can meet these rules" in tom.text(PAGE)
    start = plain(tom.text("/"))
    assert "Nobody can meet the policy in force" in start and asked.task.order_ref in start
    assert "1 person missing in the review “risk”" in start
    assert "Nobody can meet" not in visit(world.rita).text("/")


def test_the_simulator_tells_people_deadline_and_password(world: World, visit: Visit) -> None:
    """“This refund today → these people, this deadline”, in the tenant's zone and in UTC, over the change of clocks."""
    world.amber.time_zone = "Europe/Berlin"
    type(world.amber).objects.filter(pk=world.amber.pk).update(time_zone="Europe/Berlin")
    said = rules(review(quorum=2), term={"kind": "end_of_day", "days": 0, "working_days": False}, remind=2,
                 password_above={"USD": 9000}, bulk_up_to={"USD": 6000})
    in_force(world, said)
    tom = visit(world.tom)
    base = f"{TRY}?currency=USD&amount="
    text = plain(tom.text(f"{base}60.00&at=2027-03-27T23:30&requester=rita"))
    assert "2 people of these: Abel Reed, Ada Stone" in text
    assert "Sun 28 Mar 2027, 00:00 in Europe/Berlin (2027-03-27 23:00 UTC)" in text
    assert "not asked for again" in text and "may be decided so" in text
    text = plain(tom.text(f"{base}95.00&at=2027-03-28T12:00"))
    assert "Mon 29 Mar 2027, 00:00 in Europe/Berlin (2027-03-28 22:00 UTC)" in text and "decided by itself" in text
    assert "Password asked for again" in text
    assert "Nobody is asked; the refund is made." in tom.text(f"{base}1.00")
    assert "1 person is missing" in plain(tom.text(f"{base}60.00&requester=ada"))


def test_the_simulator_sets_the_proposed_rules_beside_those_in_force(world: World, visit: Visit) -> None:
    tom = visit(world.tom)
    said = rules(review(above={"USD": 7000}), forbidden_above={"USD": 8000})
    policies.propose(world.tom, world.amber, "refund", said, why="try")
    text = plain(tom.text(f"{TRY}?currency=USD&amount=60.00"))
    assert "In force: version 1" in text and "Proposed: version 2" in text
    assert "Nobody is asked; the refund is made." in text and "1 person of these" in text
    assert "Refused without asking anybody." in tom.text(f"{TRY}?currency=USD&amount=80.01")
    assert Policy.objects.get().state == "proposed"


@pytest.mark.parametrize(("query", "sentence"), [
    ("amount=60.00&currency=USD&at=2027-03-28T02:30", "the clocks go forward over it"),
    ("amount=60.00&currency=USD&at=soon", "Give a day and a time"),
    ("amount=60.00&currency=USD&at=9999-01-01T00:00", "Give a day and a time"),
    ("amount=60.00&currency=usd", "ISO 4217"),
    ("amount=6,0&currency=USD", "digits only"),
    ("amount=&currency=USD", "required"),
    ("amount=1&currency=USD&requester=bea", "Select a valid choice"),
    ("amount=%00&currency=USD", "Null characters"),
])
def test_what_the_simulator_cannot_read_is_told_beside_the_field(
    world: World, visit: Visit, query: str, sentence: str
) -> None:
    """A time in the hour that the clocks skip is no time."""
    type(world.amber).objects.filter(pk=world.amber.pk).update(time_zone="Europe/Berlin")
    answer = visit(world.tom).get(f"{TRY}?{query}")
    assert answer.status_code == 422 and sentence in plain(answer.content.decode())


def test_teams_are_kept_at_their_page(world: World, visit: Visit) -> None:
    """Made, filled and emptied; what that does to approvals is said there."""
    tom = visit(world.tom)
    assert tom.send(TEAMS, tom.form(TEAMS) | {"ref": "Risk"}).status_code == 422
    assert tom.send(TEAMS, tom.form(TEAMS) | {"ref": "risk"}).status_code == 302
    made = Team.objects.get()
    add, remove = f"{TEAMS}{made.pk}/add/", f"{TEAMS}{made.pk}/remove/"
    for username in ("bea", "nobody", ""):
        assert tom.send(add, tom.form(TEAMS, add) | {"username": username}).status_code == 422
    for username in ("ada", "sam"):
        assert tom.send(add, tom.form(TEAMS, add) | {"username": username}).status_code == 302
    text = plain(tom.text(TEAMS))
    assert "may not decide approvals" in text and "votes are counted again just before money is sent" in text
    assert tom.get(remove).status_code == 405
    assert tom.send(remove, tom.form(TEAMS, remove) | {"username": "ada"}).status_code == 302
    assert "not in the team any more" in plain(tom.client.post(
        remove, tom.form(TEAMS, remove) | {"username": "ada"}, follow=True).content.decode())
    assert [one.person for one in made.members.all()] == [world.sam]
    bea = visit(world.bea)
    token = {"csrfmiddlewaretoken": bea.form("/tasks/", "/accounts/logout/")["csrfmiddlewaretoken"]}
    assert bea.send(add, token | {"username": "bea"}).status_code == 404
