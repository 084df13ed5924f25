"""`manage.py reseal`: bring every sealed secret under the newest key of COUNTERSIGN_SEAL_KEYS."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from runtime_app.models import Account
from runtime_app.sealing import Unsealable, reseal


class Command(BaseCommand):
    help = (
        "Seal every account's secrets under the first of COUNTERSIGN_SEAL_KEYS. Put the new key in front, restart, run"
        " this, and take the old one out. Exit code 2 names an account whose secrets none of the keys opens."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        with transaction.atomic():
            accounts = list(Account.objects.select_for_update().select_related("tenant").order_by("id"))
            for account in accounts:
                try:
                    sealed = {name: reseal(getattr(account, name)) for name in _SEALED}
                except Unsealable:
                    sentence = f"None of the keys opens the secrets of {account.tenant.slug}'s account {account.ref}."
                    raise CommandError(sentence, returncode=2) from None
                Account.objects.filter(id=account.id).update(**sealed)
        self.stdout.write(f"{len(accounts)} accounts sealed under the newest key.")


_SEALED = ("api_key_sealed", "notice_secrets_sealed")
