from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from runtime_app.worker import build


class Command(BaseCommand):
    help = "Advance tasks of one lane until stopped."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--lane", default="default", help=f"one of {', '.join(settings.LANES)}")

    def handle(self, *args: Any, lane: str, **options: Any) -> None:
        if lane not in settings.LANES:
            raise CommandError(f"There is no lane {lane!r}; the lanes are {', '.join(settings.LANES)}.", returncode=2)
        build(lane).work(with_scheduler=False, logging_level="WARNING")
