"""How often a batch goes to the database, counted in the protocol messages that libpq sends."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator

from django.db import connection

from runtime_app.drain import Drain
from runtime_app.models import Task
from runtime_app.states import Status
from tests.bench import load
from tests.world import World


@contextlib.contextmanager
def sent() -> Iterator[list[str]]:
    """The statements executed on Django's connection within the block, as lines of libpq's trace."""
    connection.ensure_connection()
    raw = connection.connection.pgconn
    statements: list[str] = []
    with tempfile.TemporaryFile("w+") as file:
        raw.trace(file.fileno())
        try:
            yield statements
        finally:
            raw.untrace()
            file.seek(0)
            statements += [line for line in file if "\tF\t" in line and ("\tExecute\t" in line or "\tQuery\t" in line)]


def executed(world: World, drain: Drain, tasks: int) -> list[str]:
    load.noop3(world.amber.id, tasks)
    with sent() as statements:
        assert not drain.run(30.0, lambda: None)
    assert Task.objects.filter(status=Status.COMPLETED).count() == Task.objects.count()
    return statements


def test_the_number_of_statements_of_a_batch_does_not_grow_with_the_batch(world: World) -> None:
    """design/speed.md "What it says": claim and every commit are set-based, whatever the size of the batch."""
    drain = Drain(lane="default", worker="in-test", ports=world.ports(), batch=60, effects=1)
    try:
        executed(world, drain, 1)
        ten, fifty = executed(world, drain, 10), executed(world, drain, 50)
    finally:
        drain.close()
    assert len(ten) >= 4  # a claim and three commits at the least: the trace was really on
    assert len(fifty) == len(ten), "\n".join(fifty)
