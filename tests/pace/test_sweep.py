"""R8 and money.md 3.4: many outcomes in doubt are found by reading the account's list, not by asking for each."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from threading import Event

from runtime_app import leases, rows, sweep, tasks
from runtime_app.adapters.payments.types import Inconclusive, ProviderRefund, RefundStatus
from runtime_app.models import AccountPace, Call, Case, Evidence, Operation, Task
from runtime_app.money import Money
from runtime_app.states import Status
from runtime_app.sweep.reader import sweep as run_sweep
from runtime_app.sweep.turn import claim, give_back
from tests.attack.bent import Bent
from tests.pace.doubt import in_doubt, last_request, pace_of, requests_since, swept_pages, wish_sweep
from tests.pace.lists import SEEN, pages, refund_of
from tests.sandbox_process import wait_until
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


def test_what_is_on_two_pages_is_known_as_two(world: World) -> None:
    """F32, row 8: nothing is recorded before everything of it must have been seen."""
    newest_first = in_order(world, in_doubt(world, F4=12))
    refunds, twice = [refund_of(operation) for operation in newest_first], newest_first[-1]
    again = refund_of(twice, ref="re_again", created_at=newest_first[0].first_submit_at)
    swept(world, [again, *refunds[:6]], refunds[6:])
    task = Task.objects.get(id=twice.task_id)
    assert (task.status, task.attention) == ("completed", "DUPLICATE_EXECUTION")
    case = Case.objects.get()
    assert {r["ref"] for r in case.details["refunds"]} == {"re_again", refunds[-1].ref}


def test_a_refund_that_is_another_than_asked_for_is_a_persons_also_when_a_list_shows_it(world: World) -> None:
    """F29, row 7."""
    asked = in_doubt(world, F4=12)
    operations = [world.operation(task) for task in asked]
    wrong = refund_of(operations[0], amount=Money(999, "USD"))
    swept(world, [wrong, *map(refund_of, operations[1:])])
    asked[0].refresh_from_db()
    assert (asked[0].status, asked[0].attention) == ("reconciling", "AMOUNT_MISMATCH")
    assert Task.objects.filter(status="completed").count() == 11


def test_a_sweep_that_breaks_off_keeps_what_was_complete_and_begins_again(world: World) -> None:
    """money.md 3.4: interrupted by the provider, it starts anew, and what is recorded is not read for again."""
    operations = in_order(world, in_doubt(world, F4=24))
    away, began = Inconclusive("503", replace(SEEN, http_status=503)), operations[-1].created_at
    older = refund_of(operations[0], ref="re_older", operation_ref=None, created_at=began - timedelta(hours=1))
    swept(world, [*map(refund_of, operations[:12]), older], away)
    assert Task.objects.filter(status="completed").count() == 12
    pace = pace_of(world)
    assert pace.sweep_due_at is not None and pace.troubles == 1
    world.clock(seconds=60)
    swept(world, [*map(refund_of, operations)])
    assert Task.objects.filter(status="completed").count() == 24
    assert Call.objects.filter(kind="query").count() == 24 and pace_of(world).sweep_due_at is None


def test_pages_that_do_not_follow_each_other_prove_nothing(world: World) -> None:
    """F26: the same refunds once more; what was not certainly complete is left to looks of its own."""
    asked = in_doubt(world, F4=12)
    refunds = [refund_of(world.operation(task)) for task in asked]
    swept(world, refunds[:6], refunds[5:])
    assert not Task.objects.filter(status="completed").exists()
    assert pace_of(world).sweep_due_at is None


def test_an_account_that_closes_in_the_middle_is_swept_on_when_it_opens(world: World) -> None:
    """F50 during the sweep: no page is read of a provider that is away."""
    in_doubt(world, F4=12)
    wish_sweep(world)
    rows.run("UPDATE runtime_app_accountpace SET troubles = 5, closed_until = runtime_now() + interval '10 minutes'")
    before = last_request(world)
    assert sweep.work(world.ports(), actor=ACTOR) == 1
    assert not requests_since(world, before) and sweep.work(world.ports(), actor=ACTOR) == 0
    world.clock(minutes=11)
    assert sweep.work(world.ports(), actor=ACTOR) == 1
    assert Task.objects.filter(status="completed").count() == 12
    assert (pace_of(world).troubles, pace_of(world).closed_until) == (0, None)


def test_a_task_in_somebodys_hand_is_left_to_that_hand(world: World) -> None:
    """C04: only who holds the lease records."""
    asked = in_doubt(world, F4=12)
    held = leases.claim_these([asked[0].id], Status.RECONCILING, worker="another", seconds=600)
    assert len(held) == 1
    wish_sweep(world)
    sweep.work(world.ports(), actor=ACTOR)
    asked[0].refresh_from_db()
    assert (asked[0].status, asked[0].lease_owner, asked[0].fence) == ("reconciling", "another", held[0].fence)
    assert Task.objects.filter(status="completed").count() == 11
    leases.release([(asked[0].id, held[0].fence)], worker="another")


def test_what_a_list_shows_and_somebody_wants_more_of_is_looked_at_by_itself_at_once(world: World) -> None:
    """Row 4: a cancel is sent under the sender's lock, by a drain that holds it, never by a sweep."""
    asked = in_doubt(world, F4=12)
    operations = [world.operation(task) for task in asked]
    tasks.cancel(world.rita, asked[0].id, reason="changed my mind")
    waits = refund_of(operations[0], status=RefundStatus.REQUIRES_ACTION)
    swept(world, [waits, *map(refund_of, operations[1:])])
    asked[0].refresh_from_db()
    now = rows.run("SELECT runtime_now()")[0][0]
    assert asked[0].status == "reconciling" and asked[0].lease_owner is None
    assert asked[0].due_at is not None and asked[0].due_at <= now
    assert not Call.objects.filter(kind="cancel").exists() and operations[0].calls.filter(kind="query").count() == 0


def test_a_sweep_whose_account_was_taken_by_another_reads_no_further(world: World) -> None:
    """A worker that was paused finds the lease gone and stops."""
    in_doubt(world, F4=12)
    before = last_request(world)
    wish_sweep(world)
    late = claim(30)
    assert late is not None
    rows.run("UPDATE runtime_app_accountpace SET sweep_due_at = runtime_now() - interval '1 second'")
    assert claim(30) is not None
    run_sweep(late, world.ports(), ACTOR, Event())
    assert not requests_since(world, before)
    give_back(late, again_in=None, whole=True)
    assert pace_of(world).sweep_due_at is not None, "it is not its to give back"


def test_many_that_wait_have_a_sweep_wished_for_and_made_by_a_worker(world: World) -> None:
    """The whole way: claimed, refused for their number, swept, completed; and asked for by pages."""
    asked = in_doubt(world, F4=30)
    world.retime(sweep_from=20, look_rate=5, look_burst=5)
    world.clock(hours=2)
    before = last_request(world)
    world.until(lambda: AccountPace.objects.filter(sweep_due_at__isnull=False).exists())
    assert sweep.is_anything_due()
    stop = Event()
    assert sweep.begin(world.ports(), actor=ACTOR, stop=stop) == 1
    wait_until(lambda: pace_of(world).sweep_due_at is None)
    world.clock(hours=2)
    world.finish(*asked)
    requests = requests_since(world, before)
    assert len(swept_pages(requests)) == 1 and len(requests) < 8


def test_what_a_whole_list_did_not_show_is_no_reason_to_read_it_again(world: World) -> None:
    """M23: thirty that never arrived wait for looks of their own; the list is read anew for what is sent after it."""
    lost = in_doubt(world, F4=12, F2=30)[12:]
    world.retime(sweep_from=20, look_rate=5, look_burst=5)
    world.clock(minutes=1)  # no request of before the sweep may still be under way
    wish_sweep(world)
    assert sweep.work(world.ports(), actor=ACTOR) == 1
    world.clock(hours=2)
    before = last_request(world)
    world.until(lambda: len(requests_since(world, before)) > 5)
    assert not swept_pages(requests_since(world, before)) and pace_of(world).sweep_due_at is None
    rows.run(
        "UPDATE runtime_app_operation SET last_possible_send_at = runtime_now(), absents = 0 WHERE task_id = ANY(%s)",
        [[task.id for task in lost]],
    )
    world.clock(hours=2)
    world.until(lambda: AccountPace.objects.filter(sweep_due_at__isnull=False).exists())


def in_order(world: World, asked: list[Task]) -> list[Operation]:
    """Their operations as a provider lists what came of them: newest first."""
    return sorted(map(world.operation, asked), key=lambda one: one.first_submit_at or one.created_at, reverse=True)


def swept(world: World, *shown: list[ProviderRefund] | Inconclusive) -> None:
    """Sweep the account while its list is shown as these pages."""
    wish_sweep(world)
    ports = world.ports()
    bent = Bent(ports.providers["stripe"], list_refunds=pages(*shown))
    assert sweep.work(replace(ports, providers={"stripe": bent}), actor=ACTOR) == 1
