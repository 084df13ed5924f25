"""W1: tasks driven through three durable steps by two processes, ours, the floor's and a peer's in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import median

from tests.bench import crews, load, peers
from tests.bench.figures import Figure
from tests.bench.rig import Rig, Spent, empty

TASKS, WARM_UP, ROUNDS = 2000, 200, 3
DBOS_TASKS = 400  # at a rate that does not depend on how many there are


def drive(rig: Rig, tasks: int, workers: Iterable[int], go: Callable[[], None]) -> Spent:
    """Tasks that lie ready are driven to their end; what storing them cost is not counted."""
    crews.rest()
    empty(rig.tell)
    load.noop3(load.tenant().id, tasks)
    return rig.measured(
        tasks, workers, go,
        lambda: rig.ask("SELECT NOT EXISTS (SELECT 1 FROM runtime_app_task WHERE due_at IS NOT NULL)"),
        rig.last_commit,
    )


def ring() -> None:
    from runtime_app import bell

    if not bell.ring():
        raise RuntimeError("Redis did not take the ring")


def measure(rig: Rig, say: Callable[[str], None]) -> list[Figure]:
    ours: list[Spent] = []
    floor: list[Spent] = []
    dbos: list[Spent] = []
    with crews.ours() as workers, crews.floor() as crew, peers.dbos(rig, rig.peers) as peer:
        drive(rig, WARM_UP, workers, ring)
        drive(rig, WARM_UP, crew.pids, crew.drain)
        peer.drive(WARM_UP // 4)
        for number in range(1, ROUNDS + 1):
            ours.append(drive(rig, TASKS, workers, ring))
            floor.append(drive(rig, TASKS, crew.pids, crew.drain))
            dbos.append(peer.drive(DBOS_TASKS))
            for name, spent in (("ours", ours), ("floor", floor), ("DBOS", dbos)):
                say(f"  round {number}, {name}: {spent[-1]}")
    return [
        Figure("w1_vs_floor", ratio(ours, floor, lambda s: s.rate), "of the floor", least=0.3),
        Figure("w1_vs_dbos", ratio(ours, dbos, lambda s: s.rate), "times DBOS", least=10.0),
        Figure("w1_worker_cpu", ratio(ours, floor, lambda s: s.worker_cpu / s.tasks), "times the floor", most=3.0),
        Figure("w1_db_cpu", ratio(ours, floor, lambda s: s.database_cpu / s.tasks), "times the floor", most=1.5),
        Figure("w1_wal", ratio(ours, floor, lambda s: s.wal / s.tasks), "times the floor", most=1.5),
        Figure("w1_dbos_cpu", ratio(dbos, ours, lambda s: (s.worker_cpu + s.database_cpu) / s.tasks), "times ours"),
        Figure("w1_rate", median(s.rate for s in ours), "tasks/s"),
        Figure("w1_floor_rate", median(s.rate for s in floor), "tasks/s"),
        Figure("w1_dbos_rate", median(s.rate for s in dbos), "tasks/s"),
    ]


def ratio(ours: Sequence[Spent], other: Sequence[Spent], of: Callable[[Spent], float]) -> float:
    """The median of the rounds' own ratios: what else the machine does in a round, it does to both."""
    return median(of(one) / of(two) for one, two in zip(ours, other, strict=True))
