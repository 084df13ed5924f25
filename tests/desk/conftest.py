"""People at the desk: Olga and Otto operate in Amber; Rita asked for the refunds that go wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runtime_app import members
from runtime_app.desk import actions, reading
from runtime_app.desk.actions import Offer
from runtime_app.desk.situation import Situation
from runtime_app.models import Case, Task, User
from tests.world import PASSWORD, World


class Desk:
    """The world with a second operator, and what a page would send: the revision and digest that it showed."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.olga = world.olga
        self.otto = members.add_person(world.amber, "otto", PASSWORD, ["operator"], full_name="Otto Lake")

    def see(self, person: User, case: Case) -> Situation:
        return reading.read(person, case.id)

    def do(
        self, verb: Callable[..., Any], person: User, case: Case, *, saw: Any = None, **given: Any
    ) -> Any:
        """Do it as from a page that shows the case as it is in `saw` (as it is now when not said)."""
        saw = saw or self.see(person, case)
        return verb(person, case.id, revision=saw.case.revision, seen_sha256=saw.evidence_sha256, **given)

    def offer(self, person: User, case: Case, name: str) -> Offer:
        return actions.offer(self.see(person, case), person, name)

    def why(self, person: User, case: Case, name: str) -> str:
        """Why this person may not do that; empty when it is allowed."""
        return self.offer(person, case, name).why

    def case(self, task: Task, class_name: str, *, state: str = "open", seconds: float = 30.0) -> Case:
        """The task's case of this class; worked on until there is one."""
        found: Case = self.world.until(
            lambda: Case.objects.filter(task=task, class_name=class_name, state=state).first(), seconds
        )
        return found

    def answered(self, case: Case) -> Situation:
        """Work until what was asked for in the case is answered."""
        return self.world.until(lambda: (s := self.see(self.olga, case)).ask is None and s)  # type: ignore[no-any-return]

    def lost(self, amount: int = 1000) -> tuple[str, Task]:
        """An order and a refund of it whose request never arrived at the provider."""
        world = self.world
        order = world.order()
        task = world.ask(order, amount)
        world.sandbox.fault("F2", times=1, match={"payment_ref": f"pi_{order}"})
        world.until(lambda: "operation.unknown" in world.events(task))
        return order, task

    def absent(self) -> tuple[str, Task, Case]:
        """A refund that is absent for good: row 18."""
        self.world.retime(resend_most=0)
        order, task = self.lost()
        self.world.clock(hours=25)
        return order, task, self.case(task, "ABSENT_FINAL")

    def parked(self, task: Task) -> None:
        """Work until the task waits for a case."""
        self.world.until(lambda: Task.objects.filter(pk=task.pk, parked_reason="case_open").exists())

    def entries(self, case: Case) -> list[str]:
        return list(case.entries.order_by("at", "id").values_list("kind", flat=True))


@pytest.fixture
def desk(world: World) -> Desk:
    return Desk(world)
