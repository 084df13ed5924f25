"""W1: 2,000 tasks driven through three durable steps by two processes, ours and the floor's in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import median

from tests.bench import crews, load
from tests.bench.figures import Figure
from tests.bench.rig import Rig, Spent, empty

TASKS, WARM_UP, ROUNDS = 2000, 200, 3


def drive(rig: Rig, tasks: int, workers: Iterable[int], go: Callable[[], None]) -> Spent:
    """Tasks that lie ready are driven to their end; what storing them cost is not counted."""
    empty(rig.tell)
    load.noop3(load.tenant().id, tasks)
    return rig.measured(
        tasks, workers, go,
        lambda: rig.ask("SELECT NOT EXISTS (SELECT 1 FROM runtime_app_task WHERE due_at IS NOT NULL)"),
        lambda: rig.ask("SELECT max(status_since) FROM runtime_app_task"),
    )


def ring() -> None:
    from runtime_app import bell

    assert bell.ring(), "Redis did not take the ring"


def measure(rig: Rig, say: Callable[[str], None]) -> list[Figure]:
    ours: list[Spent] = []
    floor: list[Spent] = []
    with crews.ours() as workers, crews.floor() as crew:

        def tell_floor() -> None:
            crew.go()
            crew.hear()

        drive(rig, WARM_UP, workers, ring)
        drive(rig, WARM_UP, crew.pids, tell_floor)
        for number in range(ROUNDS):
            ours.append(drive(rig, TASKS, workers, ring))
            floor.append(drive(rig, TASKS, crew.pids, tell_floor))
            say(f"  round {number + 1}: ours {ours[-1]}")
            say(f"           floor {floor[-1]}")
    return [*compared(ours, floor), Figure("w1_rate", median(s.rate for s in ours), "tasks/s"),
            Figure("w1_floor_rate", median(s.rate for s in floor), "tasks/s")]


def compared(ours: list[Spent], floor: list[Spent]) -> list[Figure]:
    """The ratios of W1's goals, each of the medians."""

    def ratio(of: Callable[[Spent], float]) -> float:
        return median(map(of, ours)) / median(map(of, floor))

    return [
        Figure("w1_vs_floor", ratio(lambda s: s.rate), "of the floor", least=0.3),
        Figure("w1_worker_cpu", ratio(lambda s: s.worker_cpu / s.tasks), "times the floor", most=3.0),
        Figure("w1_db_cpu", ratio(lambda s: s.database_cpu / s.tasks), "times the floor", most=1.5),
        Figure("w1_wal", ratio(lambda s: s.wal / s.tasks), "times the floor", most=1.5),
    ]
