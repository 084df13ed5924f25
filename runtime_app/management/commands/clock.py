from __future__ import annotations

import signal
import threading
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from runtime_app import clock


class Command(BaseCommand):
    help = "Ring for whatever is due; any number may run, one is active."

    def handle(self, *args: Any, **options: Any) -> None:
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        clock.run(settings.TIMING.clock_poll, stop)
