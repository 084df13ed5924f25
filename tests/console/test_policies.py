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
    assert "In force: version 2" in text and "proposed by Tom Hill , agreed to by Tessa Moor" in text.replace(", agreed", " , agreed").replace("  ", " ")
    assert "smaller amounts too" in plain(second.text(f"{PAGE}{proposed.pk}/"))
