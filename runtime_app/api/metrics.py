"""A few gauges in Prometheus' text form, counted in PostgreSQL. They name no tenant; who reads them holds a token."""

from __future__ import annotations

import hmac

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from runtime_app import rows
from runtime_app.states import Status

# Each: name, what it says, label, and a query of (label value, number).
_GAUGES = (
    ("countersign_tasks", "Tasks that have not ended, by state.", "status",
     "SELECT status, count(*) FROM runtime_app_task WHERE status = ANY(%s) GROUP BY status"),
    ("countersign_tasks_parked", "Tasks that are left alone, by reason.", "reason",
     "SELECT parked_reason, count(*) FROM runtime_app_task WHERE parked_reason IS NOT NULL AND status = ANY(%s)"
     " GROUP BY parked_reason"),
    ("countersign_tasks_due_seconds", "How long the oldest due task has waited, by lane.", "lane",
     "SELECT lane, greatest(0, extract(epoch FROM runtime_now() - min(due_at))) FROM runtime_app_task"
     " WHERE due_at IS NOT NULL AND parked_reason IS NULL AND status = ANY(%s) GROUP BY lane"),
    ("countersign_outbox_waiting", "What has not left the system yet, by kind.", "kind",
     "SELECT kind, count(*) FROM runtime_app_intent WHERE done_at IS NULL AND %s::text[] IS NOT NULL GROUP BY kind"),
    ("countersign_notices_waiting", "Notices of providers that are stored and not dealt with, by provider.", "provider",
     "SELECT a.provider, count(*) FROM runtime_app_notice n JOIN runtime_app_account a ON a.id = n.account_id"
     " WHERE n.due_at IS NOT NULL AND %s::text[] IS NOT NULL GROUP BY a.provider"),
)
_LIVE = [s.value for s in (Status.QUEUED, Status.WAITING_INPUT, Status.WAITING_APPROVAL, Status.READY,
                           Status.EXECUTING, Status.RECONCILING)]


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """404 without the right token, and wherever none is set."""
    given = request.headers.get("Authorization", "").removeprefix("Bearer ").encode("utf-8", "replace")
    token = settings.METRICS_TOKEN.encode()
    if not token or not hmac.compare_digest(given, token):
        raise Http404
    lines = []
    for name, says, label, query in _GAUGES:
        lines += [f"# HELP {name} {says}", f"# TYPE {name} gauge"]
        lines += [f'{name}{{{label}="{value}"}} {float(number):g}' for value, number in rows.run(query, [_LIVE])]
    return HttpResponse("\n".join(lines) + "\n", content_type="text/plain; version=0.0.4; charset=utf-8")
