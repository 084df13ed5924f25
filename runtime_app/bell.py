"""Ringing RQ: "there is work". A ring may be lost, late or doubled; PostgreSQL knows what is due."""

from __future__ import annotations

import logging
from functools import cache

from django.conf import settings
from django.db import transaction
from redis import Redis
from rq import Queue
from rq.serializers import JSONSerializer
from rq.timeouts import JobTimeoutException

from runtime_app.points import point

log = logging.getLogger(__name__)
ADVANCE = "runtime_app.jobs.advance"  # wire format: stands in jobs that older releases queued
_ENOUGH = 4  # so many rings are waiting already that one of them starts after our commit


@cache
def redis() -> Redis:
    # One client a process: RQ keeps every client it ever saw. Short timeouts, so that no door hangs on a lost Redis.
    return Redis.from_url(settings.REDIS_URL, socket_connect_timeout=0.5, socket_timeout=2, retry=None)


def ring(lane: str = "default") -> bool:
    """Ask a worker of the lane to look for work; False when Redis did not take it (the clock rings again)."""
    point("bell.ring.before")
    try:
        queue = Queue(lane, connection=redis(), serializer=JSONSerializer)
        if queue.count < _ENOUGH:
            queue.enqueue_call(ADVANCE, kwargs={"lane": lane}, timeout=300, result_ttl=0, failure_ttl=3600)
    except JobTimeoutException:
        raise  # the time of the job that rings is over; nothing is wrong with Redis
    except Exception as error:  # whatever is wrong with Redis, the work is safe in PostgreSQL
        log.warning("ring not taken: %s", error)
        return False
    point("bell.ring.after")
    return True


def answers() -> bool:
    """Whether Redis answers; without it work is found a little later, by the clock."""
    try:
        return bool(redis().ping())
    except Exception:
        return False


def ring_after_commit(lane: str = "default") -> None:
    transaction.on_commit(lambda: ring(lane), robust=True)
