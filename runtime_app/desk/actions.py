"""What may be done about a case, as data: every action with its rules. The first rule that says why not is the answer.

There is no action that sends again, edits an amount, deletes, or makes a success without the provider's reference or a
statement's line; and none for many cases at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from runtime_app import access
from runtime_app.desk import outcomes, rules
from runtime_app.desk.rules import Rule, Who, Why
from runtime_app.desk.situation import Situation
from runtime_app.models import User
from runtime_app.reconciliation.reading import MISMATCH_CLASS


@dataclass(frozen=True, slots=True)
class Action:
    """`decides`: bound to the evidence the person saw. `declares`: two people, with a code of `outcomes.CODES`."""

    name: str
    says: str
    rules: tuple[Rule, ...]
    decides: bool = True
    declares: str = ""


@dataclass(frozen=True, slots=True)
class Offer:
    """An action for one person and one situation. `second`: with this person it would be done at once."""

    name: str
    says: str
    allowed: bool
    why: str = ""
    opens_at: datetime | None = None
    personal: bool = False
    second: bool = False
    choices: Mapping[str, str] = field(default_factory=dict)


_WORK = (rules.works_here, rules.is_open)
ACTIONS: tuple[Action, ...] = (
    Action("query_now", "Have the provider asked now.", (*_WORK, rules.can_be_asked, rules.nobody_looks)),
    Action("attach", "Name the provider's refund; it counts only if the provider shows that it fits.",
           (*_WORK, rules.of_doubt, rules.unnamed, rules.can_be_asked, rules.nobody_looks)),
    Action("record_as_found", "Accept what the provider has refunded instead as what happened.",
           (*_WORK, rules.of_class("a refund of ours that differs from what was asked for",
                                   *sorted(MISMATCH_CLASS.values())), rules.of_doubt, rules.no_party,
            rules.found_instead, rules.fresh, rules.not_the_first), declares=outcomes.AS_FOUND),
    Action("acknowledge", "Say that this is known and was made outside of us.",
           (*_WORK, rules.of_class("money that moved without us", "EXTERNAL_REFUND", "MISSING_HERE"), rules.no_party)),
    Action("declare_not_executed", "Declare that the provider never executed it.",
           (*_WORK, rules.of_doubt, rules.no_party, rules.horizon_passed, rules.nothing_found,
            rules.looked_behind_horizon, rules.not_the_first), declares=outcomes.NOT_EXECUTED),
    Action("cancel_at_provider", "Have the provider asked to cancel what it has accepted.",
           (*_WORK, rules.reconciling, rules.may_cancel_there, rules.can_be_asked, rules.nobody_looks)),
    Action("start_compensation", "Ask for a new refund that makes it good; it needs an approval of its own.",
           (rules.works_here, rules.no_party, rules.sent_back, rules.task_ended, rules.begun_by)),
    Action("close", "Close the case, saying what became of it.", (*_WORK, rules.no_party, rules.closes_by_word)),
    Action("assign", "Give the case to somebody.", _WORK, decides=False),
    Action("snooze", "Put the case away until a date.", _WORK, decides=False),
    Action("comment", "Write something down for others.", (rules.works_here,), decides=False),
)
BY_NAME: Mapping[str, Action] = {action.name: action for action in ACTIONS}


def offers(s: Situation, person: User) -> tuple[Offer, ...]:
    """Every action, in the order of the table, allowed or with why not."""
    return tuple(offer(s, person, action.name) for action in ACTIONS)


def offer(s: Situation, person: User, name: str) -> Offer:
    action, who = BY_NAME[name], Who(person.pk, access.may(person, s.case.tenant_id, "work_reconciliation"))
    why = next((said for rule in action.rules if (said := rule(s, who)) is not None), None)
    return _offer(action, s, why)


def _offer(action: Action, s: Situation, why: Why | None) -> Offer:
    choices = outcomes.CODES[action.declares] if action.declares else {}
    if action.name == "close":
        choices = outcomes.of(s.case.class_name)
    if why is not None:
        return Offer(action.name, action.says, False, why.sentence, why.opens_at, why.personal, choices=choices)
    return Offer(action.name, action.says, True, second=bool(action.declares) and s.declaration is not None,
                 choices=choices)
