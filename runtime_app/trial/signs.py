"""What the terminal shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def welcome(contract: dict[str, Any], file: Path) -> str:
    """The address and the sign-ins of a started trial."""
    lines = ["", f"  Countersign   {contract['url']}", f"  the provider  {contract['sandbox_url']}/_sandbox", ""]
    for tenant in contract["tenants"]:
        threshold = tenant["approval_threshold_minor"]
        lines.append(f"  {tenant['slug']}: refunds above {threshold} minor units need approval")
        lines.append(f"    API key  {tenant['api_key']}")
        for person in tenant["people"]:
            lines.append(f"    {person['username']:<18} {person['password']:<20} {', '.join(person['roles'])}")
        lines.append("")
    lines += [f"  All of this for scripts: {file}", "  Ctrl-C stops everything and keeps the data.", ""]
    return "\n".join(lines)
