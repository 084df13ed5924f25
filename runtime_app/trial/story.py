"""What happened in the trial before anybody looked: four refunds, asked for and decided through the real doors."""

from __future__ import annotations

from typing import Any

import requests

from runtime_app.trial.visitor import Application, Person, Provider, make_order, one_of, tenant_of

TENANT = "amber"
# Orders of the story's own, so that those in trial.json are untouched.
ORDERS = tuple(
    {
        "tenant": TENANT,
        "order_ref": f"AMBER-STORY-{number}",
        "payment_ref": f"pi_amber_story_{number}",
        "currency": "EUR",
        "captured_minor": 18_900 + 1_150 * number,
    }
    for number in range(1, 5)
)


def tell(contract: dict[str, Any]) -> None:
    """Play the story. Its request keys are fixed, so a telling that was cut off is taken up where it was.

    1. one refund whose answer the provider loses after booking it,
    2. one that an approver approves in the browser,
    3. one that waits for an approver,
    4. one that waits for its amount.
    """
    tenant = tenant_of(contract, TENANT)
    threshold = tenant["approval_threshold_minor"]
    application = Application(contract["url"], tenant["api_key"])
    requester = one_of(contract, TENANT, "requester")["username"]
    lost, approved, waiting, asking = ORDERS
    provider = Provider(contract["sandbox_url"])
    with requests.Session() as session:
        for order in ORDERS:
            make_order(session, contract["sandbox_url"], order)
    if not provider.refunds(str(lost["payment_ref"])):
        provider.lose_next_answer(str(lost["payment_ref"]))
    lost_task = application.ask_for_refund(
        "story-answer-lost", str(lost["order_ref"]), amount_minor=threshold // 2, currency="EUR",
        reason="Arrived late", on_behalf_of=requester,
    )
    approved_task = application.ask_for_refund(
        "story-approved", str(approved["order_ref"]), amount_minor=threshold + 2500, currency="EUR",
        reason="Returned unopened", on_behalf_of=requester,
    )
    waiting_task = application.ask_for_refund(
        "story-waiting", str(waiting["order_ref"]), amount_minor=threshold + 4100, currency="EUR",
        reason="Damaged in transit", on_behalf_of=requester,
    )
    asking_task = application.ask_for_refund(
        "story-amount-missing", str(asking["order_ref"]), reason="One item of three came back", on_behalf_of=requester
    )
    if application.wait(approved_task["id"], "waiting_approval", "completed")["status"] == "waiting_approval":
        approver = one_of(contract, TENANT, "approver")
        browser = Person(contract["url"], approver["username"], approver["password"])
        browser.decide(open_approval(application, approved_task["id"]), "approve", "The parcel came back sealed")
    application.wait(approved_task["id"], "completed")
    application.wait(waiting_task["id"], "waiting_approval")
    application.wait(asking_task["id"], "waiting_input")
    application.wait(lost_task["id"], "completed")


def open_approval(application: Application, task_id: str) -> str:
    """The id of the task's newest approval."""
    return str(application.read(f"tasks/{task_id}/approvals")["approvals"][-1]["id"])
