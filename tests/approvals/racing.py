"""What racers may do. What can be read beforehand is, so that the act itself begins when both are ready."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

import requests

from approvals import decisions, policies, verbs
from runtime_app import jobs, rows, tasks
from runtime_app.drain import Drain
from runtime_app.errors import RuntimeAppError
from runtime_app.models import User

Ready = Callable[[], object]


def prepare(name: str, said: Mapping[str, Any]) -> Ready:
    made: Ready = _ACTS[name](**said)
    return made


def outcome(ready: Ready) -> str:
    """`done`, or the code of the refusal."""
    try:
        ready()
    except RuntimeAppError as refused:
        return refused.code
    return "done"


def _who(username: str) -> User:
    return User.objects.get(username=username)


def decide(*, who: str, id: str, verdict: str = "approve", then_work: bool = False, **seen: Any) -> Ready:
    person = _who(who)

    def act() -> None:
        decisions.decide(person, UUID(id), verdict=verdict, reason="as it is", **seen)
        if then_work:
            _drain().run(2.0, lambda: None)

    return act


def cancel(*, who: str, task: str) -> Ready:
    person = _who(who)
    return lambda: tasks.cancel(person, task, reason="a mistake")


def amend(*, who: str, task: str, revision: int, amount: int) -> Ready:
    person = _who(who)
    return lambda: tasks.amend(person, task, revision=revision, amount_minor=amount, reason=None)


def withdraw(*, who: str, id: str) -> Ready:
    person = _who(who)
    return lambda: verbs.withdraw_vote(person, UUID(id))


def claim(*, who: str, id: str) -> Ready:
    person = _who(who)
    return lambda: verbs.claim(person, UUID(id))


def agree(*, who: str, policy: str) -> Ready:
    person = _who(who)
    return lambda: policies.agree(person, UUID(policy))


def change_order(*, url: str, order: str, destination: str) -> Ready:
    def act() -> None:
        requests.patch(f"{url}/_sandbox/orders/{order}", json={"destination": destination}, timeout=20
                       ).raise_for_status()

    return act


def expire(*, at: str, ahead: float) -> Ready:
    """The clock is so many seconds before that moment when the race begins; then a worker looks until it has come."""
    rows.run(
        "UPDATE runtime_clock SET advanced = advanced + (%s::timestamptz - make_interval(secs => %s) - runtime_now())"
        " WHERE id = 1",
        [at, ahead],
    )
    ends = datetime.fromisoformat(at)

    def act() -> None:
        over = False
        while not over:
            over = rows.now() >= ends
            _drain().run(2.0, lambda: None)

    return act


@cache
def _drain() -> Drain:
    return Drain(lane="default", worker="racer", ports=jobs.ports(), batch=20, effects=2)


_ACTS: dict[str, Callable[..., Ready]] = {
    act.__name__: act for act in (decide, cancel, amend, withdraw, claim, agree, change_order, expire)
}
