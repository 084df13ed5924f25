"""Is the process alive, and can it serve. Neither says anything about tenants, so neither asks who calls."""

from __future__ import annotations

import logging

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from runtime_app import bell

log = logging.getLogger(__name__)
_migrated = False  # once seen, it stays so for as long as this code runs


@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """Always 200: the process answers."""
    return JsonResponse({"status": "ok"})


@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when the database answers and has every migration, else 503. Redis is only noted: it may be lost."""
    database = _database()
    redis = "ok" if bell.answers() else "degraded"
    ready = database == "ok"
    told = {"status": "ready" if ready else "not ready", "database": database, "redis": redis}
    answer = JsonResponse(told, status=200 if ready else 503)
    answer["Cache-Control"] = "no-store"
    return answer


def _database() -> str:
    global _migrated
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        if not _migrated:
            executor = MigrationExecutor(connection)
            _migrated = not executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError as error:
        log.warning("not ready: %s", error)
        return "away"
    return "ok" if _migrated else "migrations missing"
