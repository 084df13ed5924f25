"""Notices sent by hand, and the list of all."""

from __future__ import annotations

import json
import re
import secrets
import sqlite3
from typing import Any

from runtime_app.sandbox.accounts import Account
from runtime_app.sandbox.app import Sandbox
from runtime_app.sandbox.asking import number, only, perhaps_ref, read_query, secret, text, whole
from runtime_app.sandbox.deliveries import Delivery
from runtime_app.sandbox.events import event_json
from runtime_app.sandbox.faults import Unusable
from runtime_app.sandbox.http11 import Reply, Request
from runtime_app.sandbox.ledger import STATUSES
from runtime_app.sandbox.notices import Letter
from runtime_app.sandbox.signing import HOW, Signing
from runtime_app.sandbox.telling import invented_refund
from runtime_app.sandbox.wire import json_reply, refund_json

_ABOUT = ("refund_id", "payment_ref", "operation_id")
_TYPE = re.compile(r"[a-z_]+(\.[a-z_]+){1,4}", re.ASCII)
_FILTERS = {"refund_id": "source", "payment_ref": "payment_ref", "operation_id": "operation_id", "tenant": "tenant",
            "event_id": "event_id", "type": "type", "state": "state"}


def list_notices(sandbox: Sandbox, request: Request) -> Reply:
    """Oldest first, each with its attempts and what was answered to them."""
    query = read_query(request, *_FILTERS, "after", "limit")
    sql, values = "SELECT * FROM notices WHERE id > ?", list[Any]([whole(query, "after", 0)])
    for name in _FILTERS.keys() & query.keys():
        sql += f" AND {_FILTERS[name]} = ?"
        values.append(query[name])
    rows = sandbox.store.all(sql + " ORDER BY id LIMIT ?", *values, whole(query, "limit", 10**6))
    return json_reply({"notices": [told(row) for row in rows]})


def told(row: sqlite3.Row) -> dict[str, Any]:
    answers = json.loads(row["answers"])
    names = ("id", "event_id", "type", "tenant", "payment_ref", "operation_id", "state", "fault")
    return {n: row[n] for n in names} | {
        "refund_id": row["source"], "created": int(row["created"]), "signing": json.loads(row["signing"])["how"],
        "attempts": len(answers), "answers": answers,
    }


def send_notice(sandbox: Sandbox, asked: dict[str, Any]) -> Delivery:
    """Send one notice `times` times, now, and answer when each was tried once.

    It tells of the newest refund that fits what is told of it; when there is none, of one that nobody made.
    """
    only(asked, "A notice", *_ABOUT, "tenant", "type", "created", "id", "times", "status", "amount", "live", "secret",
         "how", "age")
    about = {name: perhaps_ref(asked, name) for name in _ABOUT}
    if not any(about.values()):
        raise Unusable("Tell what the notice is about: refund_id, payment_ref or operation_id.")
    row = _refund(sandbox, about)
    account = _account(sandbox, perhaps_ref(asked, "tenant"), about["payment_ref"] if row is None else
                       str(row["payment_ref"]))
    kind = text(asked, "type", 80) or "refund.updated"
    if not _TYPE.fullmatch(kind):
        raise Unusable("`type` is the type of an event, as refund.updated.")
    created = number(asked, "created", int(sandbox.clock.now()), 0, 10**10)
    content = _content(sandbox, asked, about, row, kind, created)
    event = event_json(perhaps_ref(asked, "id") or "evt_" + secrets.token_hex(14), kind, created, content,
                       live=_flag(asked, "live"))
    source = str(row["id"]) if row is not None else (about["refund_id"] or content["id"])
    letter = Letter(
        account.tenant, event, source, content.get("payment_intent"),
        about["operation_id"] or (row["operation_id"] if row is not None else None), signing=_signing(asked),
        due_in=None,
    )
    ids = [sandbox.notices.keep(letter) for _ in range(number(asked, "times", 1, 1, 100))]

    def sent() -> Delivery:
        rows = [row for n in ids if (row := sandbox.notices.row(n)) is not None]
        return Delivery(reply=json_reply({"notices": [told(row) for row in rows]}, 201))

    return Delivery(first=lambda done: sandbox.notices.send(ids, done), later=sent)


def _refund(sandbox: Sandbox, about: dict[str, str | None]) -> sqlite3.Row | None:
    fits = {"id" if name == "refund_id" else name: value for name, value in about.items() if value is not None}
    return sandbox.store.one(f"SELECT * FROM refunds WHERE {' AND '.join(f'{n} = ?' for n in fits)} ORDER BY seq DESC",
                             *fits.values())


def _account(sandbox: Sandbox, tenant: str | None, payment_ref: str | None) -> Account:
    """The account that is told, or which one owns the payment, or the only one that wants notices."""
    if tenant is None and payment_ref and (payment := sandbox.ledger.payment(payment_ref)) is not None:
        tenant = str(payment["tenant"])
    wanting = [account for account in sandbox.accounts.all() if account.notice_url]
    chosen = [account for account in wanting if tenant in (None, account.tenant)]
    if not chosen:
        raise Unusable("No account wants this notice: register one with a notice_url at POST /_sandbox/accounts.")
    if len(chosen) > 1:
        raise Unusable("Several accounts want notices; tell `tenant` too.")
    return chosen[0]


def _content(
    sandbox: Sandbox, asked: dict[str, Any], about: dict[str, str | None], row: sqlite3.Row | None, kind: str,
    created: int,
) -> dict[str, Any]:
    """What the event is about, with the status and amount that were asked for in place of the true ones."""
    if row is None:
        content = invented_refund(about["payment_ref"] or "pi_nobody", about["operation_id"], created,
                                  refund_id=about["refund_id"])
    elif kind.startswith("charge."):
        payment = sandbox.ledger.payment(str(row["payment_ref"]))
        assert payment is not None
        content = sandbox.provider.charge(payment)
    else:
        content = refund_json(row)
    if (status := text(asked, "status", 40)) is not None:
        if status not in STATUSES:
            raise Unusable(f"`status` is one of {', '.join(STATUSES)}.")
        content["status"] = status
    return content | ({"amount": number(asked, "amount", 1, 1, 10**15)} if "amount" in asked else {})


def _signing(asked: dict[str, Any]) -> Signing:
    how = asked.get("how", "good")
    if how not in HOW:
        raise Unusable(f"`how` says how it is signed, one of {', '.join(HOW)}.")
    age = asked.get("age", 3600 if how == "old_timestamp" else 0)
    if type(age) not in (int, float) or not -(10**9) <= age <= 10**9:
        raise Unusable("`age` is a number of seconds.")
    return Signing(how, age, secret(asked, "secret"))


def _flag(asked: dict[str, Any], name: str) -> bool:
    value = asked.get(name, False)
    if type(value) is not bool:
        raise Unusable(f"`{name}` is true or false.")
    return value
