"""Passwords of test people: the real hasher with one round, so that the real server still verifies them."""

from __future__ import annotations

from django.contrib.auth.hashers import PBKDF2PasswordHasher


class QuickPBKDF2(PBKDF2PasswordHasher):
    iterations = 1
