"""Q3f: the floor behind an RQ wake job that rings again on a full batch. `-m tests.bench.woken` is one worker."""

from __future__ import annotations

import os
from functools import cache

from redis import Redis
from rq import Queue, SimpleWorker
from rq.serializers import JSONSerializer

from tests.bench import floor

LANE = "floor"
_ENOUGH = 4


@cache
def queue() -> Queue:
    return Queue(LANE, connection=Redis.from_url(os.environ["REDIS_URL"]), serializer=JSONSerializer)


@cache
def _connection() -> floor.Connection:
    return floor.connect(os.environ["DATABASE_URL"])


def ring() -> None:
    if queue().count < _ENOUGH:
        queue().enqueue_call("tests.bench.woken.advance", timeout=300, result_ttl=0)


def advance() -> None:
    """The wake job."""
    floor.drain(_connection(), f"woken:{os.getpid()}", full=ring)


def main() -> None:
    worker = SimpleWorker(
        [queue()], connection=queue().connection, serializer=JSONSerializer, default_result_ttl=0,
        log_job_description=False,
    )
    worker.work(logging_level="WARNING")


if __name__ == "__main__":
    main()
