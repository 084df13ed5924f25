"""R8 and money.md 3.4: many outcomes in doubt are found by reading the account's list, not by asking for each."""

from __future__ import annotations

from collections import Counter

from runtime_app import sweep
from runtime_app.models import Call, Evidence, Operation, Task
from tests.pace.doubt import in_doubt, last_request, pace_of, requests_since, swept_pages, wish_sweep
from tests.world import World

ACTOR = "worker:in-test"


def test_a_sweep_finds_in_a_page_what_would_take_a_look_each(world: World) -> None:
    """M23, F4, F2: what is there is completed as by a look, and what is not is only not seen."""
    asked = in_doubt(world, F4=30, F2=12)
    before = last_request(world)
    wish_sweep(world)
    assert sweep.work(world.ports(), actor=ACTOR) == 1
    requests = requests_since(world, before)
    assert len(swept_pages(requests)) == len(requests) == 1
    states = Counter(Task.objects.filter(id__in=[t.id for t in asked]).values_list("status", flat=True))
    assert states == {"completed": 30, "reconciling": 12}
    found = Operation.objects.filter(state="succeeded").select_related("resolved_by")
    assert all(o.checks == 1 and o.resolved_by is not None for o in found)
    assert {o.absents for o in Operation.objects.filter(state="unknown")} == {0}
    assert Call.objects.filter(kind="query", outcome="succeeded").count() == 30
    assert pace_of(world).sweep_due_at is None


def test_the_evidence_of_a_find_is_its_own_part_of_the_page(world: World) -> None:
    """M24: the page's digest stays, and of a hundred refunds only the one that it is about."""
    in_doubt(world, F4=12)
    wish_sweep(world)
    sweep.work(world.ports(), actor=ACTOR)
    for evidence in Evidence.objects.filter(kind="provider_query").select_related("operation"):
        assert evidence.body is not None and len(evidence.body_sha256) == 64
        assert [one["operation_id"] for one in evidence.body["data"]] == [str(evidence.operation_id)]
