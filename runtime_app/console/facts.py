"""Rows of facts for cards: what was asked for, what an approval is bound to, and what changed between two of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from approvals.models import Approval
from runtime_app.console import story, tags
from runtime_app.console.tags import asked_by, money_words, passed_on_by, printable
from runtime_app.models import Operation, Task

_MATERIAL = ("order_ref", "payment_ref", "amount_minor", "captured_minor", "external_minor", "destination", "reason")


@dataclass(frozen=True, slots=True)
class Fact:
    label: str | Promise
    value: Any = None
    ident: Any = None


@dataclass(frozen=True, slots=True)
class Change:
    label: str
    then: str
    now: str

    @property
    def changed(self) -> bool:
        return self.then != self.now


def of_task(task: Task) -> list[Fact]:
    through = passed_on_by(task)
    facts = [
        Fact(_("Order"), printable(task.order_ref or "—")),
        Fact(_("Payment"), printable(task.payment_ref or _("not named"))),
        Fact(_("Amount"), money_words(task.amount_minor, task.currency) if task.amount_minor else _("not given yet")),
        Fact(_("Reason"), printable_text(task.reason)),
        Fact(_("Asked by"), printable(asked_by(task)) + (f" ({printable(through)})" if through else "")),
    ]
    if follows := task.state.get("follows"):
        facts.append(Fact(_("Makes good"), _earlier(follows)))
    if isinstance(task.state.get("answer"), str):
        facts.append(Fact(_("Answer given"), printable_text(task.state["answer"])))
    if task.session:
        facts.append(Fact(_("Conversation"), ident=task.session.ref))
    workflow = _("%(name)s, version %(version)s") % {"name": task.workflow, "version": task.workflow_version}
    return [
        *facts,
        Fact(_("Request key"), ident=task.request_key),
        Fact(_("Task"), ident=task.id),
        Fact(_("Workflow"), workflow),
        Fact(_("Revision"), task.revision),
    ]


def _earlier(follows: object) -> SafeString:
    return format_html('<a href="{}">{}</a>', reverse("task", args=[follows]), _("an earlier refund"))


def of_operation(operation: Operation) -> list[Fact]:
    approvers = operation.authority.get("approvers") or []
    return [
        Fact(_("Order"), printable(operation.order_ref)),
        Fact(_("Payment"), printable(operation.payment_ref)),
        Fact(_("Amount"), money_words(operation.amount_minor, operation.currency)),
        Fact(_("Account"), printable(operation.account)),
        Fact(_("Key at the provider"), ident=operation.idempotency_key),
        Fact(_("Provider's id"), ident=operation.provider_ref),
        Fact(_("Frozen request"), ident=operation.request_sha256),
        Fact(_("Agreed by"), ", ".join(map(printable, approvers)) or _("nobody had to agree")),
        Fact(_("Rule's version"), operation.authority.get("policy_version", "—")),
        Fact(_("Looks so far"), operation.checks),
        Fact(_("Sent again"), operation.resends),
    ]


def of_approval(approval: Approval) -> list[Fact]:
    """The bound action, fact by fact."""
    shown = [Fact(story.FACTS[name], _material(approval.facts, name)) for name in _MATERIAL if name != "amount_minor"]
    read = approval.facts.get("order_read") or {}
    version = _("version %(version)s, read when this was asked and read again before anything is sent")
    if follows := approval.task.state.get("follows"):
        shown.append(Fact(_("Makes good"), _earlier(follows)))
    return [
        *shown,
        Fact(_("order as read"), version % {"version": read.get("version", "—")}),
        Fact(_("fingerprint"), ident=approval.fingerprint),
    ]


def changes(then: Approval, now: Approval) -> list[Change]:
    """Fact by fact, in a fixed order; empty when nothing that is shown differs."""
    names = (*_MATERIAL, "currency", "policy_version")
    rows = [Change(str(story.FACTS[name]), _material(then.facts, name), _material(now.facts, name)) for name in names]
    return rows if any(row.changed for row in rows) else []


def _material(facts: Mapping[str, Any], name: str) -> str:
    value = facts.get(name)
    if name.endswith("_minor") and type(value) is int:
        return money_words(value, facts.get("currency"))
    return "—" if value in (None, "") else printable_text(str(value))


def printable_text(text: str | None) -> str:
    """Prose with its line breaks kept and every invisible character made visible; a dash for none."""
    return tags.printable_text(text) if text else "—"
