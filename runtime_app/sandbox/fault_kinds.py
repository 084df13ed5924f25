"""What a fault is: the requests it can meet, and the parameters it takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

PROVIDER = ("create", "cancel", "retrieve", "list", "payment", "statement", "events")
ORDER_SYSTEM = ("order", "write_back")
QUERIES = ("retrieve", "list", "payment")
MATCHES = ("payment_ref", "operation_id", "order_ref", "tenant", "idempotency_key")
# What `on` accepts, and the requests each word stands for.
VERBS: dict[str, tuple[str, ...]] = {
    **{verb: (verb,) for verb in (*PROVIDER, *ORDER_SYSTEM, "notice")},
    "queries": QUERIES, "provider": PROVIDER, "orders": ORDER_SYSTEM, "any": PROVIDER + ORDER_SYSTEM,
}


@dataclass(frozen=True, slots=True)
class Param:
    default: Any
    kind: str  # seconds | shift | count | text | minor | flag
    help: str
    choices: tuple[Any, ...] = ()
    optional: bool = False

    def check(self, name: str, value: Any) -> Any:
        """The value, or ValueError with a sentence."""
        if value is None and (self.optional or self.default is None):
            return None
        if self.choices:
            if type(value) not in {type(c) for c in self.choices} or value not in self.choices:
                raise ValueError(f"`{name}` is one of {', '.join(map(repr, self.choices))}.")
        elif self.kind == "seconds":
            if type(value) not in (int, float) or not 0 <= value <= 10**8:
                raise ValueError(f"`{name}` is a number of seconds from 0.")
        elif self.kind == "shift":
            if type(value) is not int or not -86_399 <= value <= 86_399:
                raise ValueError(f"`{name}` is a whole number between -86399 and 86399.")
        elif self.kind == "count":
            if type(value) is not int or not 1 <= value <= 100:
                raise ValueError(f"`{name}` is a whole number from 1 to 100.")
        elif self.kind == "minor":
            if type(value) is not int or not 1 <= value <= 10**15:
                raise ValueError(f"`{name}` is a whole number of minor units from 1.")
        elif self.kind == "flag":
            if type(value) is not bool:
                raise ValueError(f"`{name}` is true or false.")
        elif not isinstance(value, str):
            raise ValueError(f"`{name}` is a text.")
        return value


@dataclass(frozen=True, slots=True)
class Fault:
    """`layer`: one fault of each layer can meet a request (key, data, answer, mode) or a notice (notice, mode); those
    of `line` and `day` meet a statement that is read, several at once; `port` and `now` act at once.

    `on_by`: the requests it meets by the value of its parameter `what`, where it can not meet all of `on`.
    """

    code: str
    help: str
    layer: str = "answer"
    on: tuple[str, ...] = ("create",)
    only: tuple[str, ...] = ()
    times: int | None = 1
    params: dict[str, Param] = field(default_factory=dict)
    lasts: bool = False
    matches: tuple[str, ...] = MATCHES
    on_by: dict[str, tuple[str, ...]] = field(default_factory=dict)
