"""Secrets at rest: sealed under the newest of the installation's keys, opened with any of them.

A key is replaced by putting the new one in front of COUNTERSIGN_SEAL_KEYS and running `manage.py reseal`; after that
the old one may go.
"""

from __future__ import annotations

from functools import cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings


class Unsealable(Exception):
    """A secret was sealed under a key that this installation does not have (any more)."""


def seal(text: str) -> str:
    """The text, sealed; empty stays empty."""
    return _box().encrypt(text.encode()).decode() if text else ""


def unseal(sealed: str) -> str:
    """What was sealed; raises Unsealable."""
    return _opened(sealed) if sealed else ""


def reseal(sealed: str) -> str:
    """The same secret under the newest key; raises Unsealable."""
    if not sealed:
        return ""
    try:
        return _box().rotate(sealed.encode()).decode()
    except InvalidToken:
        raise Unsealable from None


def forget() -> None:
    """Read the keys anew and forget every opened secret."""
    _box.cache_clear()
    _opened.cache_clear()


@cache
def _box() -> MultiFernet:
    return MultiFernet([Fernet(key) for key in settings.SEAL_KEYS])


@cache
def _opened(sealed: str) -> str:
    # Workers open the same few secrets for every batch. What is cached lives as long as the process that uses it.
    try:
        return _box().decrypt(sealed.encode()).decode()
    except InvalidToken:
        raise Unsealable from None
