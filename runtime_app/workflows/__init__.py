"""Every workflow version this code can run."""

from __future__ import annotations

from runtime_app.workflows.noop3 import NOOP3
from runtime_app.workflows.refund.v1 import REFUND_V1
from runtime_app.workflows.types import Workflow

WORKFLOWS: dict[tuple[str, int], Workflow] = {
    ("refund", 1): REFUND_V1,
    ("noop3", 1): NOOP3,
}
CURRENT: dict[str, int] = {"refund": 1, "noop3": 1}


def workflow_of(name: str, version: int) -> Workflow:
    return WORKFLOWS[name, version]
