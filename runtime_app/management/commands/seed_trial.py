from __future__ import annotations

import json
import os
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from runtime_app.trial.failure import TrialFailure
from runtime_app.trial.places import Places
from runtime_app.trial.seed import seed


class Command(BaseCommand):
    """Idempotent; prints what it seeded as JSON, secrets included."""

    help = "Put the trial's tenants, people, keys and orders in place."

    def handle(self, *args: Any, **options: Any) -> None:
        sandbox_url = os.environ.get("SANDBOX_CONTROL_URL") or settings.SANDBOX_URL
        try:
            seeded = seed(Places(settings.VAR.resolve()).keys, sandbox_url)
        except TrialFailure as failure:
            raise CommandError(str(failure)) from failure
        self.stdout.write(json.dumps(seeded))
