"""Who and what the trial is seeded with: two companies, their people, their orders."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Person:
    username: str
    full_name: str
    roles: tuple[str, ...]
    time_zone: str = ""


@dataclass(frozen=True, slots=True)
class Company:
    slug: str
    name: str
    time_zone: str
    threshold_minor: int
    people: tuple[Person, ...]
    teams: tuple[tuple[str, tuple[str, ...]], ...] = ()


BOTH = Person("noor", "Noor Haddad", ("support",))  # works for both companies

COMPANIES = (
    Company(
        "amber", "Amber Outdoor", "Europe/Berlin", 5000,
        (
            Person("rita", "Rita Okafor", ("requester",)),
            Person("ada", "Ada Lindqvist", ("approver",)),
            Person("abel", "Abel Moreau", ("approver",), "America/New_York"),
            Person("astrid", "Astrid Vik", ("approver",)),
            Person("sam", "Sam Whitfield", ("support",)),
            Person("olga", "Olga Petrenko", ("operator",)),
            Person("otto", "Otto Lehmann", ("operator",)),  # some acts on a case need two
            Person("tom", "Tom Nakamura", ("tenant_admin",)),
            Person("thea", "Thea Novak", ("tenant_admin",)),  # a policy needs two
            Person("ava", "Ava Brandt", ("auditor",)),
            BOTH,
        ),
        (("finance", ("abel", "astrid")), ("risk", ("ada", "astrid"))),
    ),
    Company(
        "birch", "Birch Books", "Asia/Shanghai", 5000,
        (
            Person("rolf", "Rolf Eriksen", ("requester",)),
            Person("bea", "Bea Castellanos", ("approver",)),
            Person("bo", "Bo Zhang", ("approver",)),
            Person("sven", "Sven Dahl", ("support",)),
            Person("omar", "Omar Said", ("operator",)),
            Person("orla", "Orla Byrne", ("operator",)),
            Person("tim", "Tim Adeyemi", ("tenant_admin",)),
            Person("tara", "Tara Singh", ("tenant_admin",)),
            Person("umi", "Umi Tanaka", ("auditor",)),
            BOTH,
        ),
        (("finance", ("bea", "bo")),),
    ),
)


def policy(threshold_minor: int, deadline: float) -> dict[str, Any]:
    """The rules of the one company that has a policy of its own: what is built in for amounts as those of the listed
    orders, and a second review for more. `deadline` in seconds.
    """
    return {
        "reviews": [
            {"name": "approval", "who": {"roles": [{"name": "approver"}]}, "above": {"*": threshold_minor}},
            {"name": "finance", "who": {"teams": ["finance"]}, "above": {"*": _LARGE}},
        ],
        "term": {"kind": "elapsed", "hours": deadline / 3600}, "remind": 24, "escalate": 4,
        "escalate_to": {"anyone": True}, "password_above": {"*": _LARGE}, "bulk_up_to": {"*": 2 * threshold_minor},
    }


POLICY_TENANT = "amber"
_LARGE = 100_000  # more than any listed order has
CURRENCIES = ("CNY", "USD", "JPY", "KWD")
ORDERS_EACH = 10


def orders() -> Iterator[dict[str, Any]]:
    """Every order, as trial.json tells it. Amounts are minor units that the provider can hold: tens of KWD's fils."""
    for company in COMPANIES:
        for currency in CURRENCIES:
            for number in range(1, ORDERS_EACH + 1):
                yield {
                    "tenant": company.slug,
                    "order_ref": f"{company.slug.upper()}-{currency}-{number:02}",
                    "payment_ref": f"pi_{company.slug}_{currency.lower()}_{number:02}",
                    "currency": currency,
                    "captured_minor": 20_000 + 3_170 * number,
                }


BANK_TENANT = "amber"
BANK_SETTINGS = {
    "debtor_iban": "NL41MOCK0000000001", "debtor_name": "Amber Goods", "debtor_bic": "MOCKNL2A",
    "debtor_currency": "EUR",
}


def bank_orders() -> Iterator[dict[str, Any]]:
    """Orders of one tenant that were paid by bank transfer, and are refunded to an account that the order names."""
    for number in range(1, 6):
        yield {
            "tenant": BANK_TENANT, "order_ref": f"AMBER-BANK-{number:02}", "payment_ref": f"bank_amber_{number:02}",
            "currency": "EUR", "captured_minor": 9_900 + 1_450 * number, "account": "bank",
            "destination": "NL30MOCK0000000005 Jonas Meyer",
        }
