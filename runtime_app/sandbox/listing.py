"""What a list is asked for: the page, the time, and whose things."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runtime_app.sandbox.http11 import Reply
from runtime_app.sandbox.wire import invalid, json_reply, read_form

WHOLE = re.compile(r"[0-9]{1,12}", re.ASCII)
_SEVERAL = re.compile(r"(expand|include)\[[0-9]{0,2}\]", re.ASCII)
_CREATED = {"created[gte]": ("from", 0), "created[gt]": ("from", 1), "created[lt]": ("until", 0),
            "created[lte]": ("until", 1)}
_PAGE = ("limit", "starting_after")


@dataclass(frozen=True, slots=True)
class Asked:
    """`since` is included, `until` is not; both are whole seconds. `tenants` None means everybody's."""

    limit: int
    after: str
    since: int | None
    until: int | None
    expand: frozenset[str]
    include: frozenset[str]
    more: dict[str, str]
    tenants: tuple[str, ...] | None

    def where(self, time: str, payment: str) -> tuple[str, list[Any]]:
        """The SQL conditions of the time and the tenants, each beginning with AND, and their values."""
        sql, values = self.where_time(time)
        if self.tenants is not None:
            sql += (f" AND EXISTS (SELECT 1 FROM payments WHERE payments.payment_ref = {payment} AND payments.tenant IN"
                    f" ({','.join('?' * len(self.tenants))}))")
            values += self.tenants
        return sql, values

    def where_time(self, time: str) -> tuple[str, list[Any]]:
        sql, values = "", list[Any]()
        for sign, value in ((">=", self.since), ("<", self.until)):
            if value is not None:
                sql += f" AND {time} {sign} ?"
                values.append(value)
        return sql, values


def read_list(query: str, tenants: tuple[str, ...] | None, *known: str) -> Asked:
    """Parse a list's query; `known` are the filters it takes beside pages and times. Raises Invalid."""
    try:
        pairs = read_form(query)
    except ValueError:
        raise invalid("The query is not form-encoded UTF-8.", "query") from None
    single: dict[str, str] = {}
    several: dict[str, set[str]] = {"expand": set(), "include": set()}
    for name, value in pairs:
        if match := _SEVERAL.fullmatch(name):
            several[match.group(1)].add(value)
        elif name in known or name in _PAGE or name in _CREATED:
            single[name] = value
        else:
            raise invalid(f"Received unknown parameter: {name[:80]}", name[:80], "parameter_unknown")
    limit = single.pop("limit", "10")
    if not WHOLE.fullmatch(limit) or not 1 <= int(limit) <= 100:
        raise invalid("Limit is 1 to 100.", "limit")
    bounds = _bounds(single)
    return Asked(int(limit), single.pop("starting_after", ""), bounds["from"], bounds["until"],
                 frozenset(several["expand"]), frozenset(several["include"]), single, tenants)


def _bounds(single: dict[str, str]) -> dict[str, int | None]:
    bounds: dict[str, int | None] = {"from": None, "until": None}
    for name, (side, more) in _CREATED.items():
        if (text := single.pop(name, None)) is None:
            continue
        if not WHOLE.fullmatch(text):
            raise invalid("Invalid timestamp.", name)
        bounds[side] = int(text) + more
    return bounds


def list_reply(url: str, data: Sequence[dict[str, Any]], more: bool, total: int | None = None) -> Reply:
    shape: dict[str, Any] = {"object": "list", "url": url, "has_more": more, "data": list(data)}
    if total is not None:
        shape["total_count"] = total
    return json_reply(shape)
