"""Everything that can happen around approvals, in any order, with the oracle asked after every agreement and effect."""

from __future__ import annotations

import contextlib
from collections import Counter
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from approvals import absences, policies, reminders, rounds, verbs
from approvals.models import Absence, Approval, Decision, Team, TeamMember
from runtime_app import members, rows, tasks
from runtime_app.errors import RuntimeAppError
from runtime_app.models import Operation, Task, User
from runtime_app.states import FINAL
from tests.approvals import oracle
from tests.approvals.oracle import Away, Given, Person, Said, Town, Unlawful, Wanted
from tests.world import World

HOURS = 48
CAST: dict[str, set[str]] = {  # who there is when a run begins, and in which roles
    "rita": {"requester"}, "una": {"requester", "approver"}, "ada": {"approver"}, "abel": {"approver"},
    "carl": {"approver"}, "sam": {"support"}, "tom": {"tenant_admin"},
}
APPROVER = {"roles": [{"name": "approver"}]}
WHO: list[Said] = [
    APPROVER, {"roles": [{"name": "approver", "up_to": {"USD": 8000}}], "people": ["ada", "abel"]}, {"teams": ["risk"]},
    {"teams": ["money"]}, {"people": ["ada", "carl"]}, {"people": ["carl"], "teams": ["money"]},
]
names = st.sampled_from(sorted(CAST))
APPROVERS = ["ada", "abel", "carl", "una"]
voters = st.sampled_from(APPROVERS * 3 + ["rita", "sam", "tom", "bea"])
amounts = st.sampled_from([4000, 6000, 9000])
any_of = st.integers(0, 7)


def review(name: str, who: Said, quorum: int, above: int) -> Said:
    return {"name": name, "who": who, "quorum": quorum, "above": {"USD": above}}


def policy(*asked: Said, order: str = "in_parallel", escalate: bool = False) -> Said:
    said: Said = {
        "reviews": list(asked), "order": order, "term": {"kind": "elapsed", "hours": HOURS},
        "hours": {"days": list(range(7)), "opens": "00:00", "closes": "23:59"},
    }
    return said | ({"escalate": 24, "escalate_to": APPROVER} if escalate else {"escalate_to": {}})


policies_said = st.builds(
    lambda whos, quorums, order, escalate, above: policy(
        *(review(f"r{n}", who, quorum, above * n) for n, (who, quorum) in enumerate(zip(whos, quorums, strict=False))),
        order=order, escalate=escalate,
    ),
    st.lists(st.sampled_from(WHO), min_size=1, max_size=2), st.tuples(*[st.sampled_from([1, 1, 2])] * 2),
    st.sampled_from(["in_parallel", "in_order"]), st.booleans(), st.sampled_from([0, 5000]),
)


class Approvals(RuleBasedStateMachine):
    """`world` and `seen` are given by the test; `seen` counts what happened, so that a run that tests nothing fails."""

    world: World
    seen: Counter[str]

    def __init__(self) -> None:
        super().__init__()
        self.wanted: dict[Any, Wanted] = {}
        self.paid: set[str] = set()
        self.town = Town({}, {"risk": set(), "money": set()}, [], {}, 0)

    @initialize(said=policies_said)
    def begin(self, said: Said) -> None:
        for name, roles in CAST.items():
            members.add_person(self.world.amber, name, None, roles)
            self._set_roles(name, roles)
            User.objects.filter(username=name).update(is_active=True)
            self.town.people[name] = Person(name, set(roles))
        Absence.objects.update(ended_at=rows.now())
        members.add_person(self.world.amber, "tessa", None, ["tenant_admin"])
        self.town.people["bea"] = Person("bea", set())
        for ref, people in (("risk", {"ada", "abel"}), ("money", {"carl", "una"})):
            team, _ = Team.objects.get_or_create(tenant=self.world.amber, ref=ref)
            TeamMember.objects.filter(team=team).delete()
            TeamMember.objects.bulk_create([TeamMember(team=team, person=self._user(name)) for name in people])
            self.town.teams[ref] = set(people)
        self._in_force(policy(review("r0", APPROVER, 2, 5000)))
        self._in_force(said)
        self.ask("rita", 9000)

    def _user(self, name: str) -> User:
        return User.objects.get(username=name)

    def _set_roles(self, name: str, roles: set[str]) -> None:
        person = self._user(name)
        for role in ("requester", "approver"):
            if role in roles:
                members.add_person(self.world.amber, name, None, [role])
            else:
                members.take_role(person, self.world.amber, role)

    def _in_force(self, said: Said) -> None:
        try:
            proposed = policies.propose(self._user("tom"), self.world.amber, "refund", said, why="because")
        except RuntimeAppError:
            self.seen["policy refused"] += 1
            return
        with contextlib.suppress(RuntimeAppError):
            policies.agree(self._user("tom"), proposed.id)
            raise AssertionError("one admin alone has changed the policy")
        agreed = policies.agree(self._user("tessa"), proposed.id)
        self.town.said, self.town.number = said, agreed.number
        self.town.before[agreed.number] = said

    def _some(self, number: int) -> tuple[Task, Wanted]:
        """A request that has not ended; a new one when there is none."""
        live = Task.objects.filter(pk__in=self.wanted).exclude(status__in=FINAL).order_by("created_at")
        found = list(live) or [self._asked("rita", 9000)]
        task = found[number % len(found)]
        return task, self.wanted[task.id]

    def _asked(self, by: str, amount: int) -> Task:
        order = self.world.order(20000)
        task = self.world.ask(order, amount, by=self._user(by))
        self.wanted[task.id] = Wanted(order, amount, by)
        self.work()
        return Task.objects.get(pk=task.id)

    # What people and the order system do to the request.

    @rule(by=st.sampled_from(["rita", "una"]), amount=amounts)
    def ask(self, by: str, amount: int) -> None:
        with contextlib.suppress(RuntimeAppError):
            self._asked(by, amount)

    @rule(number=any_of, by=st.sampled_from(["rita", "una"]), amount=amounts)
    def amend(self, number: int, by: str, amount: int) -> None:
        task, wanted = self._some(number)
        with contextlib.suppress(RuntimeAppError):
            tasks.amend(self._user(by), task.id, revision=task.revision, amount_minor=amount, reason=None)
            wanted.amount, wanted.turn = amount, wanted.turn + 1
            wanted.editors.add(by)

    @rule(number=any_of)
    def cancel(self, number: int) -> None:
        task, wanted = self._some(number)
        with contextlib.suppress(RuntimeAppError):
            if tasks.cancel(self._user("rita"), task.id, reason="a mistake").status == "cancelled":
                wanted.over = "cancelled"

    @rule(number=any_of, where=st.sampled_from(["card_1", "card_2"]))
    def destination_changes(self, number: int, where: str) -> None:
        wanted = self._some(number)[1]
        self.world.sandbox.patch_order(wanted.order, destination=where)
        wanted.destination = where

    @rule(number=any_of)
    def some_is_refunded_elsewhere(self, number: int) -> None:
        task, wanted = self._some(number)
        if wanted.external or task.status not in {"queued", "waiting_approval", "ready"}:
            return
        elsewhere = {"payment_ref": f"pi_{wanted.order}", "amount_minor": 1000}
        self.world.sandbox.patch_order(wanted.order, outside_refund=elsewhere)
        wanted.external = 1000

    # What people say.

    @rule(number=any_of, who=st.permutations(APPROVERS))
    def everybody_approves(self, number: int, who: list[str]) -> None:
        self.approve(number, who)

    @rule(number=any_of, who=st.lists(voters, min_size=1, max_size=4))
    def approve(self, number: int, who: list[str]) -> None:
        for name in who:
            self._decide(number, name, "approve")

    @rule(number=any_of, who=voters, verdict=st.sampled_from(["reject", "ask_input"]))
    def approve_not(self, number: int, who: str, verdict: str) -> None:
        self._decide(number, who, verdict)

    def _decide(self, number: int, who: str, verdict: str) -> None:
        task, wanted = self._some(number)
        asked = Approval.objects.filter(task=task, state="open").select_related("task").first()
        if asked is None:
            return
        now, town, version = rows.now(), self.town, asked.policy_version
        try:
            self.world.decide(self._user(who), asked, verdict, "as it is")
        except RuntimeAppError:
            self.seen["vote refused"] += 1
            return
        wrong = oracle.unlawful_vote(
            town, wanted, who, asked.id, version=version, now=now, deadline=asked.asked_at + timedelta(hours=HOURS)
        ) if verdict == "approve" else ""
        if wrong:
            raise Unlawful(wrong)
        self.seen[verdict] += 1
        if verdict == "reject":
            wanted.over = "rejected"
        if verdict == "approve":
            seats = oracle.places(town, wanted, who, asked.id, version=version, now=now)
            shown = tuple(asked.facts[name] for name in oracle.SHOWN)
            wanted.given.append(Given(who, asked.id, shown, seats, wanted.turn))
            self.seen["in the place of another"] += Decision.objects.filter(
                approval=asked, person__username=who, for_person__isnull=False).exists()
        else:
            self._answer(task)

    def _answer(self, task: Task) -> None:
        task.refresh_from_db()
        with contextlib.suppress(RuntimeAppError):
            tasks.supply_input(self._user("rita"), task.id, revision=task.revision, fields={"answer": "It is so"})

    @rule(number=any_of)
    def withdraw(self, number: int) -> None:
        """Somebody who has agreed takes it back, also when it is too late for that."""
        wanted = self._some(number)[1]
        if not wanted.given:
            return
        vote = wanted.given[number % len(wanted.given)]
        with contextlib.suppress(RuntimeAppError):
            verbs.withdraw_vote(self._user(vote.who), vote.approval)
            wanted.given = oracle.without(wanted.given, vote.who, vote.approval)
            self.seen["withdrawn"] += 1

    # What happens to rules, people and time.

    @rule(said=policies_said)
    def rules_change(self, said: Said) -> None:
        self._in_force(said)

    @rule(who=names, role=st.sampled_from(["approver", "requester"]), has=st.booleans())
    def role_changes(self, who: str, role: str, has: bool) -> None:
        roles = self.town.people[who].roles
        roles.add(role) if has else roles.discard(role)
        self._set_roles(who, roles)

    @rule(who=st.sampled_from(APPROVERS))
    def comes_or_goes(self, who: str) -> None:
        person = self.town.people[who]
        person.active = not person.active
        User.objects.filter(username=who).update(is_active=person.active)

    @rule(who=names, ref=st.sampled_from(["risk", "money"]))
    def team_changes(self, who: str, ref: str) -> None:
        team, people = Team.objects.get(ref=ref), self.town.teams[ref]
        if who in people:
            TeamMember.objects.filter(team=team, person__username=who).delete()
        else:
            TeamMember.objects.create(team=team, person=self._user(who))
        people.symmetric_difference_update({who})

    @rule(who=st.sampled_from(APPROVERS), other=st.sampled_from([*APPROVERS, "rita"]), hours=st.sampled_from([10, 100]))
    def goes_away(self, who: str, other: str, hours: int) -> None:
        now = rows.now()
        until = now + timedelta(hours=hours)
        with contextlib.suppress(RuntimeAppError):
            absences.enter(
                self._user(who), self.world.amber, person=self._user(who), substitute=other, starts_at=now,
                ends_at=until,
            )
            self.town.away.append(Away(who, other, now, until))

    @rule(hours=st.sampled_from([1, 26, 49]))
    def time_passes(self, hours: int) -> None:
        """Also over the end of a deadline; whom it is escalated to by then is read from the approval itself."""
        self.world.clock(hours=hours)
        while reminders.work(None, actor="worker:in-test", limit=1):
            pass
        for approval, task in Approval.objects.filter(escalated_at__isnull=False).values_list("id", "task_id"):
            if task in self.wanted:
                self.wanted[task].escalated.add(approval)
        self.work()

    @rule(rounds_too=st.booleans())
    def work(self, rounds_too: bool = True) -> None:
        """A worker's turn: what is due, then what was asked under rules that no longer hold; and what it has done."""
        self.world.work()
        while rounds_too and rounds.work(None, actor="worker:in-test", limit=1):
            pass
        sent = {str(id): task for id, task in Operation.objects.filter(
            task__in=self.wanted, first_submit_at__isnull=False).values_list("id", "task_id")}
        for id, task in sent.items():
            if id in self.paid:
                continue
            for effect in self.world.effects(self.wanted[task].order):
                if effect["operation_id"] == id:
                    self._paid(id, self.wanted[task], effect)

    def _paid(self, operation: str, wanted: Wanted, effect: dict[str, Any]) -> None:
        self.paid.add(operation)
        wrong = oracle.unlawful_effect(self.town, wanted, effect)
        if wrong:
            raise Unlawful(wrong)
        self.seen["paid by agreement" if oracle.reviews(self.town.said, wanted.amount) else "paid"] += 1

    def teardown(self) -> None:
        self.work()
        User.objects.filter(username__in=CAST).update(is_active=True)
        for task in Task.objects.exclude(status__in=FINAL):
            with contextlib.suppress(RuntimeAppError):
                tasks.cancel(self.world.sam, task.id, reason="the run is over")
