"""Our rows against the provider's own ledger: what really moved decides."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from runtime_app import invariants
from runtime_app.invariants.provider import AT_PROVIDER, SETTLED
from runtime_app.models import Account
from tests.invariants.conftest import Story, names


def _against(story: Story, ledger: list[dict[str, Any]], requests: list[dict[str, Any]] | None = None) -> set[str]:
    return names(invariants.check(ledger, requests=requests or []))


def _refund(story: Story, ledger: list[dict[str, Any]], name: str) -> dict[str, Any]:
    operation = str(story.ids()[f"op_{name}"])
    return next(refund for refund in ledger if refund["operation_id"] == operation)


def test_two_refunds_of_one_operation_are_named(story: Story) -> None:
    """P1: effective at most once, also while the outcome is unknown."""
    for name in ("done", "unknown"):
        ledger = story.ledger()
        ledger.append({**_refund(story, ledger, name), "id": "re_second"})
        assert _against(story, ledger) == {"one_effect_at_most"}


@pytest.mark.parametrize("differs", [
    {"amount_minor": 1}, {"currency": "EUR"}, {"payment_ref": "pi_other"}, {"id": "re_other"}])
def test_a_refund_that_is_not_the_one_asked_for_is_named(story: Story, differs: dict[str, Any]) -> None:
    ledger = copy.deepcopy(story.ledger())
    _refund(story, ledger, "done").update(differs)
    assert _against(story, ledger) == {"completed_is_at_the_provider"}


@pytest.mark.parametrize("kept", ["idempotency_key", "id"])
def test_a_refund_that_lost_its_name_is_known_by_its_key_or_by_its_reference(story: Story, kept: str) -> None:
    """F31: what it is called in the provider's list does not change whose it is."""
    ledger = copy.deepcopy(story.ledger())
    lost = _refund(story, ledger, "done")
    lost.update({"operation_id": None, "idempotency_key": lost["idempotency_key"] if kept != "id" else None})
    assert _against(story, ledger) == set()
    assert _against(story, [*ledger, {**lost, "id": "re_second", "idempotency_key": str(story.ids()["op_done"])}]) == {
        "one_effect_at_most"}


def test_a_completed_task_without_a_refund_is_named(story: Story) -> None:
    """Completed means one effect, and an unknown outcome may have none."""
    ledger = story.ledger()
    gone = [_refund(story, ledger, name) for name in ("resent", "unknown")]
    without = [refund for refund in ledger if refund not in gone]
    assert _against(story, without) == {"completed_is_at_the_provider"}


def test_what_is_at_another_provider_is_not_looked_for_here(story: Story) -> None:
    """The trial has a bank as well: its payments are in no ledger of the sandbox."""
    Account.objects.update(provider="bank")
    found = invariants.check([], requests=[], settled=True)
    assert not names(found) & {*AT_PROVIDER, *SETTLED}
    Account.objects.update(provider="stripe")
    assert {"completed_is_at_the_provider", "payment_total_is_named"} <= names(invariants.check([], settled=True))


@pytest.mark.parametrize("name", ["cancelled", "declined"])
def test_a_refund_of_a_task_that_ended_otherwise_is_named(story: Story, name: str) -> None:
    ledger = story.ledger()
    ledger.append({**_refund(story, ledger, "done"), "id": "re_late", "operation_id": str(story.ids()[f"op_{name}"])})
    assert _against(story, ledger) == {"nothing_moved_elsewhere"}


def test_a_refund_of_an_operation_that_we_do_not_have_is_named(story: Story) -> None:
    """M17: nothing the provider did for us is ever lost from our books."""
    ledger = story.ledger()
    ledger.append({**ledger[0], "operation_id": "11111111-1111-5111-8111-111111111111"})
    assert _against(story, ledger) == {"effects_are_ours"}


def _total(story: Story, ledger: list[dict[str, Any]]) -> list[str]:
    found = invariants.check(ledger, settled=True)
    return [v.subject for v in found if v.invariant == "payment_total_is_named"]


def test_money_on_a_payment_that_nothing_here_names_is_named(story: Story) -> None:
    """I12: money without an operation of ours on a payment of ours or of nobody's, and money that came back."""
    ledger, ref = story.ledger(), f"pi_{story.tasks['done'].order_ref}"
    outside = {**ledger[0], "id": "re_out", "operation_id": None, "idempotency_key": None, "amount_minor": 70}
    assert _total(story, ledger) == []
    assert _total(story, [*ledger, {**outside, "payment_ref": ref}]) == [ref]
    assert _total(story, [*ledger, {**outside, "payment_ref": "pi_nobody"}]) == ["pi_nobody"]
    assert _total(story, [r for r in ledger if r["payment_ref"] != ref]) == [ref]
    assert invariants.check([*ledger, {**outside, "payment_ref": ref}]) == [], "asked for by name only"


@pytest.mark.parametrize("excuse", [
    "UPDATE runtime_app_balance SET external_provider_minor = 70, external_minor = 70 WHERE payment_ref = {ref}",
    "UPDATE runtime_app_operation SET next_check_at = runtime_now() WHERE id = %(op_done)s",
    "INSERT INTO runtime_app_paymentlook (id, tenant_id, account_id, payment_ref, why, due_at, tries, found)"
    " SELECT gen_random_uuid(), tenant_id, id, {ref}, '', runtime_now(), 0, '{{}}' FROM runtime_app_account LIMIT 1",
    "INSERT INTO runtime_app_case (id, tenant_id, class_name, severity, state, blocks, payment_ref, order_ref,"
    " currency, dedup_key, details, why, deadline_at, opened_at, closed_by, outcome, revision)"
    " SELECT gen_random_uuid(), id, 'EXTERNAL_REFUND', 'high', 'open', 'payment', {ref}, '', '', 'x', '{{}}', '',"
    " runtime_now(), runtime_now(), '', '', 1 FROM runtime_app_tenant LIMIT 1",
])
def test_money_that_is_known_or_about_to_be_looked_at_is_no_violation(story: Story, excuse: str) -> None:
    """I12: acknowledged, with a case, or still to be looked at."""
    ref = f"pi_{story.tasks['done'].order_ref}"
    outside = {**story.ledger()[0], "id": "re_out", "operation_id": None, "amount_minor": 70, "payment_ref": ref}
    with story.broken(excuse.format(ref=f"'{ref}'")):
        assert _total(story, [*story.ledger(), outside]) == []


@pytest.mark.parametrize("differs", [{"idempotency_key": "fresh"}, {"body_sha256": "0" * 64}])
def test_another_key_or_other_bytes_on_the_wire_are_named(story: Story, differs: dict[str, Any]) -> None:
    """I3, I4: however often a request is sent, it is the same one under the same key."""
    sent = _sends(story, "done")
    assert _against(story, story.ledger(), [{**sent[0], **differs}]) == {"sends_are_ours"}


def test_a_send_without_a_call_is_named(story: Story) -> None:
    """I5: the provider's log holds nothing that ours does not."""
    sent = _sends(story, "resent")
    assert len(sent) == 2 and _against(story, story.ledger(), sent) == set()
    assert _against(story, story.ledger(), [*sent, sent[0]]) == {"sends_are_ours"}


def _sends(story: Story, name: str) -> list[dict[str, Any]]:
    sent = story.world.sandbox.requests(method="POST", operation_id=str(story.ids()[f"op_{name}"]))
    return [request for request in sent if request["path"] == "/v1/refunds"]
