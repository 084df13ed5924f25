from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandParser

from runtime_app.trial.failure import TrialFailure
from runtime_app.trial.signs import welcome
from runtime_app.trial.stack import Stack

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Command(BaseCommand):
    """The trial stack, in the foreground, until Ctrl-C."""

    help = "Start the whole trial: PostgreSQL, Redis, web, workers, clock and sandbox. Ctrl-C stops all of it."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", default="8000", help="the console's port; 0 takes a free one")
        parser.add_argument("--var", type=Path, default=Path("var"), help="the folder for data, keys and logs")
        parser.add_argument("--stop", action="store_true", help="stop the trial that runs in that folder")

    def handle(self, *args: Any, **options: Any) -> None:
        if not (options["port"].isascii() and options["port"].isdigit() and int(options["port"]) <= 65535):
            self.refuse(f"PORT is a number up to 65535, not {options['port']!r}.")
        stack = Stack(options["var"], port=int(options["port"]), say=self.say)
        try:
            if options["stop"]:
                self.say("Stopped." if stack.stop_other() else "Nothing runs here.")
                return
            raise_when_asked_to_stop()
            with stack.running() as contract:
                self.say(welcome(contract, stack.places.contract))
                stack.watch()
        except KeyboardInterrupt:
            self.say(f"Stopped. The data stays in {stack.places.var}.")
        except TrialFailure as failure:
            self.refuse(str(failure))

    def refuse(self, sentence: str) -> NoReturn:
        self.stderr.write(sentence)
        raise SystemExit(1)

    def say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


def raise_when_asked_to_stop() -> None:
    """The first signal stops the trial in order; later ones must not disturb that."""

    def stop(number: int, frame: FrameType | None) -> None:
        for one in STOPPING:
            signal.signal(one, signal.SIG_IGN)
        sys.stdout.write("\nStopping …\n")
        raise KeyboardInterrupt

    for one in STOPPING:
        if one is not signal.SIGHUP or signal.getsignal(one) != signal.SIG_IGN:  # nohup is meant
            signal.signal(one, stop)
