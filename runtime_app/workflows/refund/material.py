"""The material facts of a refund: what an approval is bound to."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from runtime_app.chronicle import canonical

MATERIAL = (
    "tenant", "workflow", "version", "order_ref", "payment_ref", "captured_minor", "external_minor", "amount_minor",
    "currency", "destination", "reason", "policy_version",
)


def fingerprint(facts: Mapping[str, Any]) -> str:
    """SHA-256 over the material facts in one canonical form; a KeyError names a fact that is missing."""
    return hashlib.sha256(canonical({name: facts[name] for name in MATERIAL}).encode()).hexdigest()


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    return [name for name in MATERIAL if then.get(name) != now.get(name)]
