from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from runtime_app.management.commands.up import raise_when_asked_to_stop
from runtime_app.trial.demo import play
from runtime_app.trial.failure import TrialFailure
from runtime_app.trial.stack import Stack


class Command(BaseCommand):
    """One refund from request to truth in a trial of its own, which is gone afterwards."""

    help = "Start a throw-away trial, play one refund whose answer gets lost, and show its timeline and the ledger."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        folder = Path(tempfile.mkdtemp(prefix="countersign-demo-"))
        folder.chmod(0o711)  # PostgreSQL's own user must get through
        stack = Stack(folder, port=0, say=self.say, story=False)
        raise_when_asked_to_stop()
        try:
            with stack.running() as contract:
                self.say("")
                play(contract, self.say)
        except KeyboardInterrupt:
            raise CommandError("The demonstration was stopped before its end.") from None
        except TrialFailure as failure:
            raise CommandError(f"The demonstration failed: {failure}") from failure
        finally:
            stack.remove()
            shutil.rmtree(folder, ignore_errors=True)

    def say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
