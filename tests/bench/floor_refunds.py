"""The floor of a whole refund: the same four HTTP calls with the same libraries, and the same rows by hand.

A batch of 50 is claimed; its orders are read beside each other, what follows is made durable by one statement, the
orders are read again and the payments compared, the frozen requests are made durable by one statement, and the sends
run beside each other, their outcomes made durable as they arrive. Whatever is not as the happy path wants it raises.
`python -m tests.bench.floor_refunds` is one worker process of it.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import UUID, uuid5

import requests
import stripe

from tests.bench import floor
from tests.bench.floor import BATCH, Connection, Held, Records, array, arrays, fresh_ids
from tests.bench.floor_refund_sql import API_VERSION, CLAIM_REFUNDS, COMPLETED, EXECUTING, READY

OPERATIONS = UUID("5a0f6f0c-6f0e-5d0b-9f7e-0d6a3c1b7e21")
TENANT, THRESHOLD, AT_ONCE = "bench", 1_000_000, 8


@dataclass(slots=True)
class Refund:
    """A refund in hand, and what became known of it on the way."""

    task: Held
    order_ref: str
    amount: int
    currency: str
    request_key: str
    read: dict[str, Any] = field(default_factory=dict)
    took: float = 0.0
    payment_ref: str = ""
    fingerprint: str = ""
    operation_id: str = ""
    call_id: str = ""
    body: str = ""
    body_sha256: str = ""
    refund: Any = None


class Worker:
    def __init__(self, connection: Connection, base_url: str, name: str) -> None:
        self.connection, self.base_url, self.name = connection, base_url, name
        self.pool = ThreadPoolExecutor(AT_ONCE)
        self.own = threading.local()
        self.ahead = timedelta()
        stripe.enable_telemetry = False
        self.stripe = stripe.StripeClient(
            "sk_test_bench", http_client=stripe.RequestsClient(timeout=(3.0, 25.0)), max_network_retries=0,
            stripe_version=API_VERSION, base_addresses={"api": base_url},
        )

    def drain(self) -> int:
        """Refund everything that is due; returns how many."""
        done = 0
        while True:
            found = self.connection.execute(
                CLAIM_REFUNDS, [BATCH, self.name, self.name, array(fresh_ids(BATCH))], prepare=True
            ).fetchall()
            if found:
                self.ahead = found[0][6] - datetime.now(UTC)
                refunds = [Refund(Held(*row[:6]), *row[7:]) for row in found]
                self._ready(list(self.pool.map(self._read, refunds)))
                self._executing(list(self.pool.map(self._compare, refunds)))
                running = {self.pool.submit(self._send, refund) for refund in refunds}
                while running:
                    finished, running = wait(running, return_when=FIRST_COMPLETED)
                    self._completed([future.result() for future in finished])
            done += len(found)
            if len(found) < BATCH:
                return done

    def close(self) -> None:
        self.pool.shutdown()

    def _session(self) -> requests.Session:
        session: requests.Session | None = getattr(self.own, "session", None)
        if session is None:
            session = self.own.session = requests.Session()
            session.trust_env = False
        return session

    def _read(self, refund: Refund) -> Refund:
        begun = time.perf_counter()
        answer = self._session().get(f"{self.base_url}/orders/{TENANT}/{refund.order_ref}", timeout=(3.0, 10.0))
        answer.raise_for_status()
        refund.read = answer.json()
        refund.took = (time.perf_counter() - begun) * 1000
        return refund

    def _compare(self, refund: Refund) -> Refund:
        """The order once more, and the payment as the provider has it."""
        self._read(refund)
        begun = time.perf_counter()
        told = self.stripe.v1.payment_intents.retrieve(refund.payment_ref, {"expand": ["latest_charge"]})
        captured = next(p["captured_minor"] for p in refund.read["payments"] if p["payment_ref"] == refund.payment_ref)
        charge: Any = told.latest_charge
        if told.livemode or told.amount_received != captured or charge.amount_refunded or charge.disputed:
            raise RuntimeError(f"the provider has other figures: {told}")
        refund.took += (time.perf_counter() - begun) * 1000
        return refund

    def _send(self, refund: Refund) -> Refund:
        begun = time.perf_counter()
        refund.refund = self.stripe.v1.refunds.create(
            {"payment_intent": refund.payment_ref, "amount": refund.amount,
             "metadata": {"operation_id": refund.operation_id}},
            {"idempotency_key": refund.operation_id},
        )
        if refund.refund.status != "succeeded" or refund.refund.amount != refund.amount:
            raise RuntimeError(f"not refunded: {refund.refund}")
        refund.took = (time.perf_counter() - begun) * 1000
        return refund

    def _material(self, refund: Refund) -> tuple[dict[str, Any], str]:
        read = refund.read
        (payment,) = read["payments"]
        external = sum(r["amount_minor"] for r in payment["refunds"])
        if read["currency"] != refund.currency or payment["captured_minor"] - external < refund.amount:
            raise RuntimeError(f"cannot be refunded: {read}")
        material = {
            "tenant": TENANT, "workflow": "refund", "version": 1, "order_ref": refund.order_ref,
            "payment_ref": payment["payment_ref"], "captured_minor": payment["captured_minor"],
            "external_minor": external, "amount_minor": refund.amount, "currency": refund.currency,
            "destination": read["destination"], "reason": None, "policy_version": 1,
        }
        return material, hashlib.sha256(_json(material).encode()).hexdigest()

    def _ready(self, refunds: Sequence[Refund]) -> None:
        records, at, more = self._records(), self._now(), []
        ids = fresh_ids(3 * len(refunds))
        for refund in refunds:
            material, refund.fingerprint = self._material(refund)
            refund.payment_ref = material["payment_ref"]
            read = {"version": refund.read["version"], "as_of": refund.read["as_of"]}
            taken = {"amount_minor": refund.amount, "currency": refund.currency, "payment_ref": refund.payment_ref}
            records.add(refund.task, ids.pop(), "ready", (
                ("order.read", _json(read)), ("hold.taken", _json(taken)),
                ("task.ready", _json({"policy": "at or under the threshold", "threshold_minor": THRESHOLD})),
            ), refund.took)
            more.append((
                refund.payment_ref, refund.fingerprint, _json({"order": read, "material": material}), ids.pop(),
                ids.pop(), refund.order_ref, refund.currency, material["captured_minor"], refund.amount,
                read["version"],
            ))
        self._commit(READY, "ready", refunds, more, [at] * 3, records)

    def _executing(self, refunds: Sequence[Refund]) -> None:
        records, at, more = self._records(), self._now(), []
        ids = fresh_ids(2 * len(refunds))
        authority = _json({"policy_version": 1, "threshold_minor": THRESHOLD})
        for refund in refunds:
            if self._material(refund)[1] != refund.fingerprint:
                raise RuntimeError(f"the order has changed: {refund.read}")
            named = "\x1f".join((TENANT, "refund", refund.request_key, "refund", "1"))
            refund.operation_id, refund.call_id = str(uuid5(OPERATIONS, named)), ids.pop()
            refund.body = urlencode([
                ("payment_intent", refund.payment_ref), ("amount", refund.amount),
                ("metadata[operation_id]", refund.operation_id),
            ])
            refund.body_sha256 = hashlib.sha256(refund.body.encode()).hexdigest()
            read = {"version": refund.read["version"], "as_of": refund.read["as_of"]}
            submitted = {
                "operation": refund.operation_id, "amount_minor": refund.amount, "currency": refund.currency,
                "payment_ref": refund.payment_ref, "body_sha256": refund.body_sha256[:12], "again": False,
            }
            says = (("order.read", _json(read)), ("operation.submitted", _json(submitted)))
            records.add(refund.task, ids.pop(), "executing", says, refund.took)
            more.append((
                refund.operation_id, refund.call_id, refund.order_ref, refund.payment_ref, refund.amount,
                refund.currency, refund.body, refund.body_sha256, refund.fingerprint, authority,
            ))
        until = at + timedelta(seconds=60)
        self._commit(EXECUTING, "executing", refunds, more, [at, at, until, until, at, at], records)

    def _completed(self, refunds: Sequence[Refund]) -> None:
        records, at, more = self._records(), self._now(), []
        ids = fresh_ids(3 * len(refunds))
        for refund in refunds:
            answer, evidence_id = refund.refund.last_response, ids.pop()
            seen = {name: refund.refund[name] for name in (
                "id", "object", "amount", "currency", "status", "payment_intent", "created")}
            told = {
                "tenant": TENANT, "order_ref": refund.order_ref, "operation_id": refund.operation_id,
                "payment_ref": refund.payment_ref, "amount_minor": refund.amount, "status": "succeeded",
                "provider_ref": refund.refund.id,
            }
            succeeded = {"operation": refund.operation_id, "provider_ref": refund.refund.id}
            says = (("operation.succeeded", _json(succeeded)), ("hold.consumed", ""), ("task.completed", ""))
            records.add(refund.task, ids.pop(), "completed", says, refund.took, "on_ready.then")
            more.append((
                refund.operation_id, refund.call_id, evidence_id, ids.pop(), answer.request_id or "",
                hashlib.sha256(answer.body.encode()).hexdigest(), _json(seen), refund.refund.id, _json(told),
            ))
        self._commit(COMPLETED, "completed", refunds, more, [at] * 6, records)

    def _now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def _records(self) -> Records:
        return Records(f"worker:{self.name}", self._now().isoformat())

    def _commit(
        self, query: str, to: str, refunds: Sequence[Refund], more: Sequence[tuple[Any, ...]], instants: list[datetime],
        records: Records,
    ) -> None:
        keys = [(r.task.id, r.task.revision, r.task.fence, r.task.seq, r.task.head.hex()) for r in refunds]
        columns = [list(column) for column in zip(*more, strict=True)]
        moved = self.connection.execute(
            query, [*arrays(keys), *columns, *instants, *records.params()], prepare=True
        ).fetchall()
        if len(moved) != len(refunds):
            raise RuntimeError("a refund was lost to somebody else")
        for refund in refunds:
            refund.task.status, refund.task.revision = to, refund.task.revision + 1


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def main() -> None:
    with floor.connect(os.environ["DATABASE_URL"]) as connection:
        floor.serve(Worker(connection, os.environ["SANDBOX_URL"], f"floor:{os.getpid()}").drain)


if __name__ == "__main__":
    main()
