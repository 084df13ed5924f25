"""The words in which people decide, as data: how a case of each class may be closed, what a declaration rests on."""

from __future__ import annotations

from collections.abc import Mapping

from runtime_app.reconciliation.classes import BY_PROOF

_STATEMENT = {
    "explained": "The difference is explained and is right as it is.",
    "provider_corrected": "The provider was wrong and has corrected it.",
}
_BACK = {
    "recovered": "The money that should not have gone out has come back.",
    "written_off": "The money that was too much is written off.",
}

# What a person may close a case with. A class that is not here is closed by what settles it, never by a word.
_BY_CLASS: dict[str, Mapping[str, str]] = {
    "DUPLICATE_EXECUTION": _BACK | {"customer_keeps": "The customer keeps what was paid more than once."},
    "LATE_EXECUTION": {
        "accepted": "It may stay as it is: the customer was to have the money after all.",
        "recovered": _BACK["recovered"],
    },
    "RETURNED": {
        "paid_otherwise": "The customer was paid in another way.",
        "written_off": "The customer is not paid again, and that is agreed on.",
    },
    "BALANCE_DISAGREES": _STATEMENT | {
        "explained": "The difference is explained and right; refunds go on for as long as it is exactly this.",
    },
    "MISSING_AT_PROVIDER": _STATEMENT,
    "MISSING_HERE": _STATEMENT,
    "AMOUNT_OVER": _STATEMENT | _BACK,
    "AMOUNT_UNDER": _STATEMENT,
    "CURRENCY": _STATEMENT,
    "PARENT": _STATEMENT,
    "ACCOUNT_OR_MODE": _STATEMENT,
    "STATUS_CONFLICT": _STATEMENT,
    "DISPUTED": {
        "dispute_won": "The dispute was decided for us.",
        "dispute_lost": "The dispute was decided for the customer.",
    },
}
_PROVED = {"settled": "The outcome is proved, so that nothing is left to decide."}

# Written by what settles a case: a proof, or a decision that has rules of its own.
_WRITTEN = {
    "succeeded": "It is proved that the provider did it.",
    "failed": "It is proved that the provider did not do it.",
    "not_executed": "It is proved, or two people have declared, that the provider never executed it.",
    "acknowledged": "A person knows of it, and what may still be refunded follows it.",
    "compensated": "A new refund was asked for to make it good.",
    "recorded_as_found": "Two people have accepted what the provider did as what happened.",
}

WORDS: Mapping[str, str] = {
    **_WRITTEN, **_PROVED, **{word: says for each in _BY_CLASS.values() for word, says in each.items()}, **_STATEMENT,
}

NOT_EXECUTED, AS_FOUND = "not_executed", "as_found"
CODES: Mapping[str, Mapping[str, str]] = {
    NOT_EXECUTED: {
        "provider_denies": "The provider has said in writing that it never executed it.",
        "absent_everywhere": "Neither its lists nor its statements nor its own pages show it.",
        "customer_without": "The customer has shown that nothing arrived, and the provider shows nothing.",
    },
    AS_FOUND: {
        "provider_confirms": "The provider has confirmed the amount in writing.",
        "statement_shows": "The statement shows this amount.",
        "agreed_with_customer": "The customer has agreed to the amount that was paid.",
    },
}


def of(class_name: str) -> Mapping[str, str]:
    """The words that a case of this class may be closed with, each with its sentence; empty for none."""
    return _PROVED if class_name in BY_PROOF else _BY_CLASS.get(class_name, {})


def says(class_name: str, word: str) -> str:
    """What this word means for a case of this class."""
    return of(class_name).get(word) or WORDS.get(word, word)
