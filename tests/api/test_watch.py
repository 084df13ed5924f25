"""What is kept for a client that does not take it."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from runtime_app.api.hub import WAITING_MOST, Watch
from runtime_app.api.reader import Place, Told
from runtime_app.models import ServiceAccount

TENANT = UUID(int=1)


def _told(many: int) -> list[Told]:
    at = datetime(2030, 1, 1, tzinfo=UTC)
    return [Told(Place(n, UUID(int=2), 1), "task.opened", "service:x", at, {}) for n in range(many)]


def test_a_client_that_falls_behind_is_kept_nothing_and_reads_again() -> None:
    """Memory is bounded: what was dropped is in the database, and read from there."""
    watch = Watch(ServiceAccount(), TENANT)
    watch.offer(_told(WAITING_MOST))
    watch.offer(_told(1))
    assert watch.behind and list(watch.take()) == []
    watch.offer(_told(3))
    assert list(watch.take()) == [], "nothing with a gap before it"
    watch.catch_up()
    watch.offer(_told(WAITING_MOST))
    assert len(list(watch.take())) == WAITING_MOST
