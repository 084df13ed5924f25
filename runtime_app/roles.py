"""Roles as presets: each grants these permissions on one tenant. Groups carry them, one a role and tenant."""

from __future__ import annotations

_SEE = ("see_tasks",)
ROLES: dict[str, tuple[str, ...]] = {
    "requester": (*_SEE, "request_tasks", "supply_input", "amend_tasks", "cancel_tasks"),
    "approver": (*_SEE, "see_approvals", "decide_approvals"),
    "support": (*_SEE, "see_approvals", "see_reconciliation", "supply_input", "cancel_tasks"),
    "operator": (*_SEE, "see_approvals", "see_reconciliation", "work_reconciliation", "cancel_tasks"),
    "tenant_admin": (*_SEE, "see_approvals", "see_reconciliation", "manage_tenant", "read_audit"),
    "auditor": (*_SEE, "see_approvals", "see_reconciliation", "read_audit"),
}
# What a service account may do in its tenant; people decide, service accounts never.
SERVICE_RIGHTS = frozenset({"see_tasks", "request_tasks", "supply_input", "amend_tasks", "cancel_tasks"})
