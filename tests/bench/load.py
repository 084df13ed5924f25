"""Tasks to be driven, stored by the product's own births."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

CHUNK = 500


def tenant() -> Any:
    from runtime_app.members import found_tenant

    return found_tenant("bench", "Bench", approval_threshold_minor=1_000_000)


def noop3(tenant_id: Any, count: int) -> None:
    """Store this many three-step tasks; nobody is rung for."""
    from runtime_app.births import NewTask, open_tasks

    for start in range(0, count, CHUNK):
        open_tasks([
            NewTask(tenant_id=tenant_id, workflow="noop3", workflow_version=1, request_key=uuid4().hex,
                    request_sha256="0" * 64, actor="bench")
            for _ in range(min(CHUNK, count - start))
        ])
