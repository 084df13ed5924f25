"""What happened in the trial before anybody looked: four refunds, asked for and decided through the real doors."""

from __future__ import annotations

from typing import Any

from runtime_app.trial.visitor import Application, Person, Provider, one_of, tenant_of

TENANT = "amber"
# Orders of the story's own, so that those in trial.json are untouched.
ORDERS: tuple[dict[str, Any], ...] = tuple(
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
    for order in ORDERS:
        provider.make_order(order)
    if not provider.refunds(lost["payment_ref"]):
        provider.lose_next_answer(lost["payment_ref"])
    lost_task = application.ask_for_refund(
        "story-answer-lost", lost["order_ref"], amount_minor=threshold // 2, currency="EUR",
        reason="Arrived late", on_behalf_of=requester,
    )
    approved_task = application.ask_for_refund(
        "story-approved", approved["order_ref"], amount_minor=threshold + 2500, currency="EUR",
        reason="Returned unopened", on_behalf_of=requester,
    )
    waiting_task = application.ask_for_refund(
        "story-waiting", waiting["order_ref"], amount_minor=threshold + 4100, currency="EUR",
        reason="Damaged in transit", on_behalf_of=requester,
    )
    asking_task = application.ask_for_refund(
        "story-amount-missing", asking["order_ref"], reason="One item of three came back", on_behalf_of=requester
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
