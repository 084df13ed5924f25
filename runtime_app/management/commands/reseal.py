"""`manage.py reseal`: bring every sealed secret under the newest key of COUNTERSIGN_SEAL_KEYS."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from approvals.models import WebhookEndpoint
from runtime_app.models import Account
from runtime_app.sealing import Unsealable, reseal


class Command(BaseCommand):
    help = (
        "Seal every secret of accounts and webhooks under the first of COUNTERSIGN_SEAL_KEYS. Put the new key in front,"
        " restart, run this, and take the old one out. Exit code 2 names one that none of the keys opens."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        with transaction.atomic():
            endpoints = _endpoints()
            accounts = list(Account.objects.select_for_update().select_related("tenant").order_by("id"))
            for account in accounts:
                try:
                    sealed = {name: reseal(getattr(account, name)) for name in _SEALED}
                except Unsealable:
                    sentence = f"None of the keys opens the secrets of {account.tenant.slug}'s account {account.ref}."
                    raise CommandError(sentence, returncode=2) from None
                Account.objects.filter(id=account.id).update(**sealed)
        self.stdout.write(f"{len(accounts)} accounts and {endpoints} webhooks sealed under the newest key.")


def _endpoints() -> int:
    """The secrets of addresses that are told of approvals, also of those that were dropped."""
    found = list(WebhookEndpoint.objects.select_for_update().select_related("tenant").order_by("id"))
    for endpoint in found:
        try:
            sealed = reseal(endpoint.secret_sealed)
        except Unsealable:
            sentence = f"None of the keys opens the secret of {endpoint.tenant.slug}'s webhook {endpoint.id}."
            raise CommandError(sentence, returncode=2) from None
        WebhookEndpoint.objects.filter(id=endpoint.id).update(secret_sealed=sealed)
    return len(found)


_SEALED = ("api_key_sealed", "notice_secrets_sealed")
