"""What a tenant may set of a Stripe account, and what is wrong with it."""

from __future__ import annotations

from runtime_app.adapters.payments.days import known_zone
from runtime_app.adapters.payments.types import ProviderAccount

CREATED_FILTER = "created_filter"  # on | off: whether the server can list balance transactions by time


def can_filter(account: ProviderAccount) -> bool:
    return account.settings.get(CREATED_FILTER, "on") == "on"


def wrong_settings(account: ProviderAccount) -> dict[str, str]:
    """Sentences by name; a key of the other mode is refused before it could move money of the wrong kind."""
    wrong = {name: "Stripe has no such setting." for name in account.settings if name != CREATED_FILTER}
    if account.settings.get(CREATED_FILTER, "on") not in ("on", "off"):
        wrong[CREATED_FILTER] = "Use on or off: whether this server can list balance transactions by time."
    if known_zone(account.time_zone) is None:
        wrong["time_zone"] = "Use the name of a time zone, for example Europe/Berlin."
    other = "live" if account.mode == "test" else "test"
    if f"_{other}_" in account.api_key:
        wrong["api_key"] = f"This key is for {other} mode, and the account is in {account.mode} mode."
    return wrong
