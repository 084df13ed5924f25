"""Acts about many tenants and many refunds at once, for a nursery's children."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings

from runtime_app import accounts, invariants, members, tasks
from runtime_app.errors import RuntimeAppError
from runtime_app.models import RuntimeClock, Task, Tenant, User
from runtime_app.tasks import Request

SECRET = "whsec_crowd"
PEOPLE = (("rita", "requester"), ("ada", "approver"), ("abel", "approver"), ("olga", "operator"), ("otto", "operator"))


def found(*, tenants: Sequence[str], threshold: int) -> dict[str, str]:
    """Make these tenants, all with the same people; tells the id of each one's account at Stripe."""
    RuntimeClock.objects.get_or_create(id=1)
    made = {}
    for slug in tenants:
        tenant = members.found_tenant(slug, slug.title(), approval_threshold_minor=threshold)
        for name, role in PEOPLE:
            members.add_person(tenant, name, None, [role])
        account = accounts.keep(
            tenant, "stripe", provider="stripe", api_key=f"sk_test_{slug}", base_url=settings.SANDBOX_URL,
            notice_secrets=[SECRET], is_default=True,
        )
        made[slug] = str(account.pk)
    return made


def ask(*, wanted: Sequence[Mapping[str, Any]]) -> None:
    """Ask, as Rita, for each of these: tenant, order, payment, amount, key, currency."""
    rita = User.objects.get(username="rita")
    known: dict[str, Tenant] = {}
    for each in wanted:
        slug = each["tenant"]
        tenant = known.setdefault(slug, known.get(slug) or Tenant.objects.get(slug=slug))
        request = Request(
            "refund", each["order"], amount_minor=each["amount"], currency=each.get("currency", "USD"),
            payment_ref=each["payment"],
        )
        tasks.create(rita, tenant, request, request_key=each["key"])


def cancel(*, keys: Sequence[str]) -> dict[str, str]:
    """Ask to cancel each, as Rita; what came of it: its status, or the refusal's code."""
    rita, told = User.objects.get(username="rita"), {}
    for task in Task.objects.filter(request_key__in=list(keys)):
        try:
            told[task.request_key] = str(tasks.cancel(rita, task.id, reason="the customer kept it").status)
        except RuntimeAppError as refused:
            told[task.request_key] = refused.code
    return told


def check(*, control_url: str, settled: bool = False) -> list[tuple[str, str, str]]:
    """Every invariant that is broken, our rows held against the sandbox's ledger and log: its name, the row, and how.
    What is moving meanwhile is right when it is read again."""
    import requests

    def told(what: str) -> Any:
        return requests.get(f"{control_url}/_sandbox/{what}", timeout=60).json()[what]

    def broken() -> list[invariants.Violation]:
        return invariants.check(told("refunds"), requests=told("requests"), settled=settled)

    found = broken()
    again = set(broken()) if found else set()
    return [(v.invariant, v.subject, v.detail) for v in found if v in again]
