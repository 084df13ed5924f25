"""Whose bank account pays, and to whom: what an account and a destination must hold before a file is written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from stdnum import bic, iban
from stdnum.exceptions import ValidationError

from runtime_app.adapters.payments.days import known_zone
from runtime_app.adapters.payments.types import ProviderAccount
from runtime_app.currencies import EXPONENTS

NAME_MOST = 70  # characters of a name in a SEPA payment
DESTINATION_MOST = 200
SETTINGS = frozenset({"debtor_iban", "debtor_name", "debtor_bic", "debtor_currency"})
_COMPACT = re.compile(r"[A-Z0-9]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Debtor:
    """The account that pays. `currency` empty: not told."""

    iban: str
    name: str
    bic: str
    currency: str


@dataclass(frozen=True, slots=True)
class Creditor:
    iban: str
    name: str  # empty: not told


def read_iban(text: str) -> str | None:
    """The IBAN without spaces, in capitals; None when its shape or its check digits are wrong."""
    try:
        found: str = iban.validate(text)
    except ValidationError:
        return None
    return found if _COMPACT.fullmatch(found) else None


def read_destination(text: str | None) -> Creditor | str:
    """`IBAN` or `IBAN Name of the person`, the IBAN in one piece or in groups; or a sentence that says what is wrong.

    The IBAN ends where the shortest beginning of the words is a right one: a country's IBANs are of one length.
    """
    if text is None or not text.strip():
        return "A bank needs to know where the money goes: write the IBAN, then the name of the person."
    if len(text) > DESTINATION_MOST or not text.isprintable():
        return f"Write the IBAN and the name on one line of at most {DESTINATION_MOST} characters."
    words = text.split()
    for count in range(1, len(words) + 1):
        if found := read_iban("".join(words[:count])):
            return _creditor(found, " ".join(words[count:]))
    return "This does not begin with a right IBAN: its check digits, its length or its country are wrong."


def _creditor(found: str, name: str) -> Creditor | str:
    if len(name) > NAME_MOST:
        return f"A name in a bank payment has at most {NAME_MOST} characters."
    return Creditor(found, name)


def read_debtor(account: ProviderAccount) -> Debtor:
    """As the settings say it. Raises nothing: `account_trouble` says what is wrong with them."""
    return Debtor(
        read_iban(_setting(account, "debtor_iban")) or "", " ".join(_setting(account, "debtor_name").split()),
        _setting(account, "debtor_bic").strip().upper(), _setting(account, "debtor_currency").strip().upper(),
    )


def account_trouble(account: ProviderAccount) -> Mapping[str, str]:
    """What is missing or wrong, as sentences by the name of the setting."""
    debtor = read_debtor(account)
    checks = {
        "base_url": (account.base_url.startswith(("https://", "http://")),
                     "Write the address of the bank, beginning with https://."),
        "debtor_iban": (bool(debtor.iban), "Write the IBAN of the account that pays; its check digits must be right."),
        "debtor_name": (0 < len(debtor.name) <= NAME_MOST and debtor.name.isprintable(),
                        f"Write the name of the account's holder, of at most {NAME_MOST} characters."),
        "debtor_bic": (bool(bic.is_valid(debtor.bic)) and bool(_COMPACT.fullmatch(debtor.bic)),
                       "Write the BIC of the bank, of 8 or 11 characters."),
        "debtor_currency": (debtor.currency in EXPONENTS or not debtor.currency,
                            "Write the account's ISO 4217 currency code, for example EUR, or leave it out."),
        "time_zone": (known_zone(account.time_zone) is not None,
                      "Write the bank's time zone by its IANA name, for example Europe/Amsterdam."),
        "api_key": (not account.api_key or (account.api_key.isascii() and account.api_key.isprintable()),
                    "Write user:password or a token, in plain ASCII on one line."),
    }
    unknown = {str(name): "A bank's account has no such setting." for name in account.settings if name not in SETTINGS}
    return {name: sentence for name, (right, sentence) in checks.items() if not right} | unknown


def _setting(account: ProviderAccount, name: str) -> str:
    value: object = account.settings.get(name)  # kept as JSON, which can hold anything
    return value if isinstance(value, str) else ""
