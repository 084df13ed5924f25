"""DBOS doing W1: three durable steps a task, run in the peers' environment as `-m tests.bench.dbos_program`.

`work URL` is one worker process; `enqueue URL COUNT` stores that many tasks. It is tuned: many workflows at once, a
short poll, no log, no telemetry, a pool as large as the threads.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

from dbos import DBOS, DBOSClient

QUEUE, NAME = "three-steps", "three_steps"
AT_ONCE, POLL = 25, 0.05


def nothing(number: int) -> int:
    return number


def main() -> None:
    what, url = sys.argv[1:3]
    if what == "enqueue":
        client = DBOSClient(system_database_url=url)
        for _ in range(int(sys.argv[3])):
            client.enqueue({"queue_name": QUEUE, "workflow_name": NAME})
        client.destroy()
        return
    step = DBOS.step(name="nothing")(nothing)

    def three_steps() -> int:
        return int(step(1)) + int(step(2)) + int(step(3))

    config: dict[str, Any] = {
        "name": "bench", "system_database_url": url, "sys_db_pool_size": AT_ONCE, "max_executor_threads": AT_ONCE + 8,
        "log_level": "ERROR", "enable_otlp": False, "application_version": "1",
    }
    DBOS(config=config)
    DBOS.workflow(name=NAME)(three_steps)
    DBOS.launch()
    DBOS.register_queue(QUEUE, worker_concurrency=AT_ONCE, polling_interval_sec=POLL, on_conflict="always_update")
    print(json.dumps({"ready": True}), flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
