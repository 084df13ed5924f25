"""Every class of case, as data: how grave it is, what it stops meanwhile, by when a person must have looked at it."""

from __future__ import annotations

from dataclasses import dataclass

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0


@dataclass(frozen=True, slots=True)
class CaseClass:
    """`blocks`: what is not submitted while it is open. `ends_with_proof`: a proved outcome closes it by itself;
    the others stay until a person has said what follows. `within` seconds a person must have decided.
    """

    severity: str  # critical | high | normal
    blocks: str  # nothing | payment | order
    says: str
    ends_with_proof: bool = True
    within: float = DAY


CLASSES: dict[str, CaseClass] = {
    # of an operation whose outcome is not proved
    "STALE_PENDING": CaseClass("normal", "nothing", "The provider has accepted it and does not settle it."),
    "AMOUNT_MISMATCH": CaseClass("critical", "order", "The provider's refund has another amount.", within=2 * HOUR),
    "CURRENCY_MISMATCH": CaseClass("critical", "order", "The provider's refund is in another currency.",
                                   within=2 * HOUR),
    "PARENT_MISMATCH": CaseClass("critical", "order", "The provider refunded another payment.", within=2 * HOUR),
    "LOOKALIKES": CaseClass("normal", "nothing", "There is a refund like it that does not name it."),
    "KEY_CONFLICT": CaseClass("critical", "payment", "The provider knows its key with another request.",
                              within=2 * HOUR),
    "ABSENT_FINAL": CaseClass("high", "nothing", "It is absent for good, and nobody wished to cancel it.",
                              within=4 * HOUR),
    "LOOKUP_UNAVAILABLE": CaseClass("high", "nothing", "The provider cannot be asked what happened.", within=4 * HOUR),
    # of money that moved otherwise than we had recorded
    "DUPLICATE_EXECUTION": CaseClass("critical", "order", "The provider executed it more than once.",
                                     ends_with_proof=False, within=2 * HOUR),
    "LATE_EXECUTION": CaseClass("critical", "payment", "It was executed after it had been proved absent or refused.",
                                ends_with_proof=False, within=2 * HOUR),
    "RETURNED": CaseClass("high", "payment", "The money came back after it had been refunded.", ends_with_proof=False,
                          within=DAY),
    "EXTERNAL_REFUND": CaseClass("high", "payment", "The provider shows a refund that nobody asked for here.",
                                 ends_with_proof=False),
    "BALANCE_DISAGREES": CaseClass("high", "payment", "The order system's, the provider's and our figures differ.",
                                   ends_with_proof=False),
    # of a statement
    "MISSING_AT_PROVIDER": CaseClass("high", "nothing", "We have it as done, and no statement shows it.",
                                     ends_with_proof=False),
    "MISSING_HERE": CaseClass("high", "payment", "The statement shows a booking that we do not know.",
                              ends_with_proof=False),
    "AMOUNT_OVER": CaseClass("critical", "order", "The statement shows more than was asked for.",
                             ends_with_proof=False, within=2 * HOUR),
    "AMOUNT_UNDER": CaseClass("high", "order", "The statement shows less than was asked for.", ends_with_proof=False),
    "CURRENCY": CaseClass("critical", "order", "The statement shows another currency.", ends_with_proof=False,
                          within=2 * HOUR),
    "PARENT": CaseClass("critical", "order", "The statement shows it on another payment.", ends_with_proof=False,
                        within=2 * HOUR),
    "ACCOUNT_OR_MODE": CaseClass("critical", "order", "It belongs to another account, or to the other mode.",
                                 ends_with_proof=False, within=2 * HOUR),
    "STATUS_CONFLICT": CaseClass("critical", "payment", "The statement contradicts the outcome that we have.",
                                 ends_with_proof=False, within=2 * HOUR),
    "DISPUTED": CaseClass("high", "payment", "The customer's bank disputes the payment.", ends_with_proof=False),
}
BY_PROOF = frozenset(name for name, each in CLASSES.items() if each.ends_with_proof)
AFTERWARDS = frozenset(CLASSES) - BY_PROOF
_GRAVE = {"critical": 0, "high": 1, "normal": 2}


def graver(one: str, other: str) -> str:
    """The graver of two classes; the first when they are equal."""
    return min(one, other, key=lambda name: _GRAVE[CLASSES[name].severity])
