"""What happened in the trial before anybody looked, asked for and decided through the real doors."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from runtime_app.trial import cast
from runtime_app.trial.bank_file import statement_of
from runtime_app.trial.visitor import Application, Person, Provider, one_of, tenant_of

TENANT = "amber"
BANK_ORDER: dict[str, Any] = {
    "tenant": TENANT, "order_ref": "AMBER-STORY-6", "payment_ref": "bank_amber_story_6", "currency": "EUR",
    "captured_minor": 25_800, "account": "bank", "destination": "NL30MOCK0000000005 Jonas Meyer",
}
# Orders of the story's own, so that those in trial.json are untouched.
ORDERS: tuple[dict[str, Any], ...] = (
    *(
        {
            "tenant": TENANT, "order_ref": f"AMBER-STORY-{number}", "payment_ref": f"pi_amber_story_{number}",
            "currency": "EUR", "captured_minor": 18_900 + 1_150 * number,
        }
        for number in range(1, 6)
    ),
    BANK_ORDER,
)


class Story:
    """Whoever takes part. Request keys are fixed, so a telling that was cut off is taken up where it was."""

    def __init__(self, contract: dict[str, Any]) -> None:
        tenant = tenant_of(contract, TENANT)
        self._contract = contract
        self.threshold: int = tenant["approval_threshold_minor"]
        self.application = Application(contract["url"], tenant["api_key"])
        self.provider = Provider(contract["sandbox_url"])

    def ask(self, name: str, order: dict[str, Any], reason: str, amount_minor: int | None) -> str:
        """Ask for a refund for the requester; the task's id."""
        amount = {} if amount_minor is None else {"amount_minor": amount_minor, "currency": "EUR"}
        requester = one_of(self._contract, TENANT, "requester")["username"]
        task = self.application.ask_for_refund(
            f"story-{name}", order["order_ref"], reason=reason, on_behalf_of=requester, **amount
        )
        return str(task["id"])

    def person(self, role: str) -> Person:
        """Somebody of that role, signed in."""
        told = one_of(self._contract, TENANT, role)
        return Person(self._contract["url"], told["username"], told["password"])


def tell(contract: dict[str, Any]) -> None:
    """Play the story:

    1. one refund whose answer the provider loses after booking it,
    2. one that an approver approves in the browser,
    3. one that waits for an approver,
    4. one that waits for its amount,
    5. one that the provider makes with another amount, which is a case,
    6. one by bank, on its way,
    7. and yesterday's statement of the bank, which an operator brings: one line of it nobody knows.
    """
    story = Story(contract)
    for order in ORDERS:
        story.provider.make_order(order)
    ends = {**_refunds(story), **_refunds_for_people(story)}
    bank = cast.BANK_SETTINGS
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    story.person("operator").bring_statement(statement_of(yesterday, bank["debtor_iban"], bank["debtor_currency"]))
    for task, statuses in ends.items():
        story.application.wait(task, *statuses)


def _refunds(story: Story) -> dict[str, tuple[str, ...]]:
    """Those that nobody has to agree to; what each task comes to."""
    lost, altered, threshold = ORDERS[0], ORDERS[4], story.threshold
    if not story.provider.refunds(lost["payment_ref"]):
        story.provider.lose_next_answer(lost["payment_ref"])
    if not story.provider.refunds(altered["payment_ref"]):
        story.provider.alter_next_amount(altered["payment_ref"], threshold - 600)
    return {
        story.ask("answer-lost", lost, "Arrived late", threshold // 2): ("completed",),
        story.ask("amount-altered", altered, "Scratched", threshold - 1100): ("reconciling",),
        story.ask("by-bank", BANK_ORDER, "Booking cancelled", threshold - 1800): ("reconciling", "completed"),
    }


def _refunds_for_people(story: Story) -> dict[str, tuple[str, ...]]:
    """Those that people agree to, or give something to; what each task comes to."""
    _lost, approved, waiting, asking, *_rest = ORDERS
    decided = story.ask("approved", approved, "Returned unopened", story.threshold + 2500)
    waits = story.ask("waiting", waiting, "Damaged in transit", story.threshold + 4100)
    asks = story.ask("amount-missing", asking, "One item of three came back", None)
    if story.application.wait(decided, "waiting_approval", "completed")["status"] == "waiting_approval":
        approval = open_approval(story.application, decided)
        story.person("approver").decide(approval, "approve", "The parcel came back sealed")
    return {decided: ("completed",), waits: ("waiting_approval",), asks: ("waiting_input",)}


def open_approval(application: Application, task_id: str) -> str:
    """The id of the task's newest approval."""
    return str(application.read(f"tasks/{task_id}/approvals")["approvals"][-1]["id"])
