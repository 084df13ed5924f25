from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from runtime_app.members import add_person
from runtime_app.models import Tenant, User
from runtime_app.roles import ROLES


class Command(BaseCommand):
    help = "Give a person a role in a tenant. A new person gets a password by `manage.py changepassword`."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("tenant", help="its slug")
        parser.add_argument("username")
        parser.add_argument("role", choices=sorted(ROLES))
        parser.add_argument("--name", default="", help="the full name of a new person")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = Tenant.objects.filter(slug=options["tenant"]).first()
        if tenant is None:
            raise CommandError(f"There is no tenant {options['tenant']}.")
        fresh = not User.objects.filter(username=options["username"]).exists()
        add_person(tenant, options["username"], None, [options["role"]], full_name=options["name"])
        self.stdout.write(f"{options['username']} is {options['role']} of {tenant.name} now.")
        if fresh:
            self.stdout.write(f"Set a password: manage.py changepassword {options['username']}")
