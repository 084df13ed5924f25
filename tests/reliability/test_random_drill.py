"""A drill from one seed: many refunds, every fault at random, people who change their minds, and accidents beside it.

The workers, the clock, the web process, PostgreSQL, Redis and the sandbox are real processes; workers are killed with
SIGKILL in the middle of whatever they do. Then the faults end, time passes, statements are read, two operators go
through what was left for people, and everything must have come to its end. `COUNTERSIGN_SEED` replays a drill's plan,
`COUNTERSIGN_ROUNDS` as much of it as that.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from runtime_app.trial.cluster import Cluster
from tests.reliability.drill import CAPTURED, CURRENCIES, TENANTS, THRESHOLD, Plan, Round
from tests.reliability.matrix import DRILL, SEED
from tests.reliability.stage import Stage, running_stage

PAYMENTS, ROUNDS, ASKS = (1500, 150, 60) if DRILL else (300, 4, 50)
ROUNDS = int(os.environ.get("COUNTERSIGN_ROUNDS", ROUNDS))
DAY = 86400.0
AFTERWARDS = 5 * DAY  # longer than anything that was queued, and than a statement may be late
PEOPLE_MOST = 10  # times that two operators go through what is open


@pytest.fixture
def stage(cluster: Cluster, tmp_path: Path) -> Iterator[Stage]:
    with running_stage(cluster, tmp_path, 11, retry_first=2.0) as running:
        running.found(TENANTS, THRESHOLD)
        yield running


class Drill:
    def __init__(self, stage: Stage, plan: Plan) -> None:
        self.stage, self.plan = stage, plan
        self.sandbox = stage.room.sandbox
        self.accepted: set[str] = set()
        self.counts: Counter[str] = Counter()
        self.chance = random.Random(plan.dice.random())

    def prepare(self) -> None:
        for payment in self.plan.payments:
            self.sandbox.order(payment.order, tenant=payment.tenant, currency=payment.currency,
                               payments={payment.ref: CAPTURED})
        for tenant in TENANTS:
            for currency in CURRENCIES:
                name = f"{tenant}-{currency}-other"
                self.sandbox.order(name, tenant=tenant, currency=currency, payments={f"pi_{name}": 10**9})

    def round(self, each: Round) -> None:
        for payment, arm in each.faults:
            how = {name: payment.own(value) for name, value in arm.how.items()}
            match = {name: payment.own(value) for name, value in arm.match.items()}
            # One that acts at once may find nothing left of the payment: then nothing happens.
            self.sandbox.control("POST", "/faults", {"fault": arm.fault, "match": match, **how})
        self._accidents(each)
        told = self.stage.room.nursery.do("drill_acts.act", wanted=each.acts, seconds=300)
        self.accepted |= set(told["accepted"])
        for lie in each.notices:
            self.sandbox.control("POST", "/notices", lie)
        self.counts.update(acts=len(each.acts), faults=len(each.faults), notices=len(each.notices))
        self.sandbox.advance(each.jump)
        self._let_work(20.0)

    def _accidents(self, each: Round) -> None:
        for program in self.chance.sample(self.stage.workers.programs, each.kills):
            if program.alive:
                os.kill(program.pid, signal.SIGKILL)
                self.counts["kills"] += 1
        if each.empties_redis:
            with Redis.from_url(self.stage.room.redis_url) as redis:
                redis.flushdb()
            self.counts["emptied"] += 1
        if each.away:
            self.sandbox.fault("F50", seconds=each.away)
        if each.port_closed:
            self.sandbox.fault("F1", seconds=each.port_closed)

    def _let_work(self, seconds: float) -> None:
        """Go on with the next round when most of this one has been taken up."""
        due = "SELECT count(*) FROM runtime_app_task WHERE due_at <= runtime_now() AND parked_reason IS NULL"
        until = time.monotonic() + seconds
        while self.stage.room.ask(due)[0][0] > ASKS // 2 and time.monotonic() < until:
            time.sleep(0.1)

    def end(self) -> None:
        """The faults are over, the provider settles what it had accepted, and time passes."""
        self.sandbox.clear_faults()
        self._settle_pending()
        self.stage.drive(lambda: False, most=AFTERWARDS, each=self._decide)
        for _ in range(PEOPLE_MOST):
            for _ in range(3):  # what they have asked for is answered at once; they decide on what is fresh
                if self._is_over():
                    return
                self.counts.update(self.stage.room.nursery.do("drill_acts.operate", seconds=300))
                self.stage.quiet()
                self._decide()
            self._settle_pending()
            self.stage.drive(lambda: False, most=DAY / 2, each=self._decide)

    def _settle_pending(self) -> None:
        for refund in self.sandbox.refunds():
            if refund["status"] in ("pending", "requires_action"):
                self.sandbox.set_refund(refund["id"], self.chance.choice(("succeeded", "succeeded", "failed")))

    def _decide(self) -> None:
        if self.stage.room.ask("SELECT 1 FROM approvals_approval WHERE state = 'open' LIMIT 1"):
            decide = [{"act": "decide", "tenant": tenant, "by": "ada", "verdict": "approve", "most": 500}
                      for tenant in TENANTS]
            self.stage.room.nursery.do("drill_acts.act", wanted=decide, seconds=300)

    def _is_over(self) -> bool:
        return not self.unfinished() and not self.stage.room.ask("SELECT 1 FROM runtime_app_case WHERE state = 'open'")

    def unfinished(self) -> list[tuple[Any, ...]]:
        return self.stage.room.ask(
            "SELECT t.request_key, t.status, t.parked_reason, t.attention, t.payment_ref FROM runtime_app_task t"
            " WHERE t.status NOT IN ('completed', 'rejected', 'failed', 'cancelled') ORDER BY 1"
        )

    def lost(self) -> set[str]:
        return self.accepted - {key for (key,) in self.stage.room.ask("SELECT request_key FROM runtime_app_task")}

    def doubled(self) -> list[str]:
        """Operations for which the provider moved money more than once, by no fault of its own alone."""
        made = Counter(r["idempotency_key"] for r in self.sandbox.refunds() if r["idempotency_key"] is not None
                       and r["payment_ref"] not in self.plan.twice)
        return sorted(key for key, many in made.items() if many > 1)

    def failed_but_paid(self) -> list[str]:
        """Operations whose money moved although the task ended otherwise, and no person was told."""
        moved = {r["idempotency_key"] for r in self.sandbox.refunds()}
        ended = self.stage.room.ask(
            "SELECT o.id::text FROM runtime_app_operation o JOIN runtime_app_task t ON t.id = o.task_id"
            " WHERE t.status IN ('failed', 'cancelled', 'rejected')"
            " AND NOT EXISTS (SELECT 1 FROM runtime_app_case c WHERE c.operation_id = o.id)"
        )
        return sorted(id for (id,) in ended if id in moved)

    def people(self) -> int:
        return int(self.stage.room.ask("SELECT count(*) FROM runtime_app_case")[0][0])


@pytest.mark.timeout(3600 if DRILL else 1200)
def test_everything_ends_right_whatever_happens(stage: Stage, print_line: Callable[[str], None]) -> None:
    """Done when: thousands of acts, faults and accidents; nothing doubled, failed but paid, or lost; all at rest."""
    begun = time.monotonic()
    plan = Plan(SEED, PAYMENTS, ROUNDS, ASKS)
    drill = Drill(stage, plan)
    drill.prepare()
    for each in plan.rounds:
        drill.round(each)
    drill.end()
    lost, doubled, unpaid = drill.lost(), drill.doubled(), drill.failed_but_paid()
    broken, unfinished = stage.check(settled=True), drill.unfinished()
    refunds = stage.room.ask("SELECT count(*) FROM runtime_app_operation")[0][0]
    told = " ".join(f"{what}={many}" for what, many in sorted(drill.counts.items()) if " " not in what)
    print_line(
        f"DRILL seed={SEED} operations={refunds} requests={len(drill.accepted)} payments={PAYMENTS}"
        f" doubled={len(doubled)} failed_but_paid={len(unpaid)} lost={len(lost)} people={drill.people()}"
        f" unfinished={len(unfinished)} seconds={time.monotonic() - begun:.0f} {told}"
    )
    wrong = {"lost": sorted(lost), "doubled": doubled, "failed but paid": unpaid, "unfinished": unfinished,
             "invariants": broken}
    assert not any(wrong.values()), _story(drill, wrong)


def _story(drill: Drill, wrong: dict[str, Any]) -> str:
    """What is wrong, with what each payment in question has met; the seed replays it."""
    of = dict(drill.stage.room.ask("SELECT id::text, payment_ref FROM runtime_app_operation"))
    of |= dict(drill.stage.room.ask("SELECT id::text, payment_ref FROM runtime_app_task WHERE payment_ref IS NOT NULL"))
    text = f"COUNTERSIGN_SEED={SEED}: {wrong}"
    named = {ref for ref in drill.plan.history if ref in text} | {ref for id, ref in of.items() if id in text}
    return "\n".join([text, *(f"{ref}: {'; '.join(drill.plan.history[ref])}" for ref in sorted(named))])
