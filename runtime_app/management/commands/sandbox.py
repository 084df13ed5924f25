"""`manage.py sandbox`: the trial's payment provider and order system."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from runtime_app.sandbox.__main__ import run


class Command(BaseCommand):
    help = "Serve the sandbox: a payment provider and an order system with a control plane under /_sandbox."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=int, default=0)
        parser.add_argument("--control-port", type=int, default=0)
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--db", required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        code = run(options["db"], options["host"], options["port"], options["control_port"])
        if code:
            raise SystemExit(code)
