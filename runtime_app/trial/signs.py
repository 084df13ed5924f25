"""What the terminal shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runtime_app.trial import cast


def welcome(contract: dict[str, Any], file: Path) -> str:
    """The address and the sign-ins of a started trial."""
    provider = f"{contract['sandbox_url']}/_sandbox"
    lines = ["", f"  Countersign   {contract['url']}", f"  the provider  {provider}  (break it, let time pass)", ""]
    for tenant in contract["tenants"]:
        threshold = tenant["approval_threshold_minor"]
        lines.append(f"  {tenant['slug']}: refunds above {threshold} minor units need approval")
        lines.append(f"    API key  {tenant['api_key']}")
        for person in tenant["people"]:
            lines.append(f"    {person['username']:<18} {person['password']:<20} {', '.join(person['roles'])}")
        lines += [f"    {told}" for told in _orders(contract, tenant["slug"])]
        lines.append("")
    lines += [f"  All of this for scripts: {file}", "  Ctrl-C stops everything and keeps the data.", ""]
    return "\n".join(lines)


def _orders(contract: dict[str, Any], tenant: str) -> Iterator[str]:
    """The orders of a tenant as ranges, one for each currency and one for those that were paid by bank."""
    told = [order for order in contract["orders"] if order["tenant"] == tenant]
    cards = [[o["order_ref"] for o in told if o["currency"] == currency] for currency in cast.CURRENCIES]
    yield "orders   " + ", ".join(f"{refs[0]} … {refs[-1][-2:]}" for refs in cards if refs)
    if bank := [order["order_ref"] for order in cast.bank_orders() if order["tenant"] == tenant]:
        yield f"by bank  {bank[0]} … {bank[-1][-2:]} (EUR)"
