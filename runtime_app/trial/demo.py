"""The whole main job without a hand: one refund from request to truth, its answer lost on purpose."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from runtime_app.events import TYPES
from runtime_app.trial.failure import TrialFailure
from runtime_app.trial.story import open_approval
from runtime_app.trial.visitor import Application, Person, Provider, one_of, orders_of, tenant_of

TENANT = "birch"


def play(contract: dict[str, Any], say: Callable[[str], None]) -> None:
    """Returns when exactly one refund was made and the task says so; any other end raises TrialFailure."""
    tenant = tenant_of(contract, TENANT)
    order = orders_of(contract, TENANT, "USD")[0]
    amount = tenant["approval_threshold_minor"] + 4821
    provider = Provider(contract["sandbox_url"])
    application = Application(contract["url"], tenant["api_key"])

    say(f"1. An application asks for a refund of {amount} minor units of USD on {order['order_ref']}.")
    task = application.ask_for_refund(
        f"demo-{secrets.token_hex(4)}", order["order_ref"], amount_minor=amount, currency="USD",
        reason="Demonstration", on_behalf_of=one_of(contract, TENANT, "requester")["username"],
    )["id"]
    application.wait(task, "waiting_approval")
    say("2. It is above the threshold, so it waits for a person; the provider is told to lose its next answer.")
    provider.lose_next_answer(order["payment_ref"])
    approver = one_of(contract, TENANT, "approver")
    browser = Person(contract["url"], approver["username"], approver["password"])
    browser.decide(open_approval(application, task), "approve", "Seen and agreed")
    say(f"3. {approver['username']} signs in and approves it by the form.")
    application.wait(task, "reconciling", "completed")
    say("4. The provider booked the refund and the answer never came; the runtime asks what really happened …")
    end = application.wait(task, "completed", "failed", "cancelled", "rejected")

    say("\nThe timeline\n")
    events = application.read(f"tasks/{task}/events")["events"]
    for event in events:
        say("  " + line(event))
    refunds = provider.refunds(order["payment_ref"])
    say("\nThe provider's ledger\n")
    for refund in refunds:
        say("  {id}  {amount_minor} {currency}  {status}  for operation {operation_id}".format(**refund))
    judge(end, amount, events, refunds)
    say("\nOne request, one answer lost, one refund.")


def line(event: dict[str, Any]) -> str:
    """One event as a sentence, with the time in UTC, who did it and the event's name."""
    who = event["actor"].split(":")
    actor = who[-1] if who[0] in ("person", "service") else who[0]
    return f"{event['at'][11:23]}  {TYPES[event['type']]}\n{'':14}{event['type']} · {actor}"


def judge(task: dict[str, Any], amount: int, events: list[dict[str, Any]], refunds: list[dict[str, Any]]) -> None:
    """Raise TrialFailure unless this is the one right end."""
    if task["status"] != "completed":
        raise TrialFailure(f"The task ended as {task['status']} and not as completed.")
    if [refund["amount_minor"] for refund in refunds] != [amount]:
        raise TrialFailure(f"The provider's ledger has {len(refunds)} refunds and not one of {amount}.")
    if not any(event["type"] == "operation.unknown" for event in events):
        raise TrialFailure("The provider's answer was not lost, so nothing was shown.")
