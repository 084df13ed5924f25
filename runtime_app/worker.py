"""The RQ worker of ours: in process, one queue, quick to notice the dead, and never left with a broken connection."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import close_old_connections, connection
from redis import Redis
from redis.backoff import ExponentialBackoff
from redis.retry import Retry
from rq import Queue, SimpleWorker
from rq.job import Job
from rq.serializers import JSONSerializer

from runtime_app import jobs


class LaneWorker(SimpleWorker):
    """Runs wake jobs one after another in this process; a drain inside one runs many tasks beside each other."""

    max_connection_wait_time = 1.0  # RQ would wait up to a minute after Redis is back

    def perform_job(self, job: Job, queue: Queue, *args: Any, **kwargs: Any) -> bool:
        close_old_connections()
        try:
            return bool(super().perform_job(job, queue, *args, **kwargs))
        finally:
            close_old_connections()

    def request_stop(self, signum: int, frame: Any) -> None:
        jobs.drain(self.queues[0].name).stop.set()
        super().request_stop(signum, frame)  # type: ignore[no-untyped-call]  # RQ has no annotation there


def build(lane: str) -> LaneWorker:
    # A Redis that is away for longer than the retries ends the process; its supervisor starts it again.
    tcp: dict[str, Any] = {} if settings.REDIS_URL.startswith("unix:") else {"socket_keepalive": True}
    redis = Redis.from_url(
        settings.REDIS_URL, socket_connect_timeout=2, retry=Retry(ExponentialBackoff(cap=1), 3), **tcp
    )
    queue = Queue(lane, connection=redis, serializer=JSONSerializer)
    connection.close()
    return LaneWorker(
        [queue], connection=redis, serializer=JSONSerializer, worker_ttl=30, maintenance_interval=30,
        default_result_ttl=0, log_job_description=False,
    )
