"""Refund, version 1: one request, one payment, one operation."""

from __future__ import annotations

from runtime_app.states import Status
from runtime_app.workflows.refund.facts import load
from runtime_app.workflows.refund.judge import on_queued, on_ready, on_waiting_approval, on_waiting_input
from runtime_app.workflows.refund.reconcile import on_reconciling
from runtime_app.workflows.refund.submit import on_executing
from runtime_app.workflows.types import Handler, Workflow

REFUND_V1 = Workflow(
    name="refund",
    version=1,
    load=load,
    handlers={
        Status.QUEUED: Handler(on_queued, waits_outside=True),
        Status.WAITING_INPUT: Handler(on_waiting_input),
        Status.WAITING_APPROVAL: Handler(on_waiting_approval),
        Status.READY: Handler(on_ready, waits_outside=True),
        Status.EXECUTING: Handler(on_executing),
        Status.RECONCILING: Handler(on_reconciling),
    },
)
