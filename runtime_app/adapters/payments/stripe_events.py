"""Stripe's events tell which key made a refund, for thirty days: the last way to know one that lost its metadata."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from runtime_app.adapters.payments.stripe_evidence import Answer
from runtime_app.adapters.payments.stripe_lists import PAGE_SIZE, read_entries
from runtime_app.adapters.payments.stripe_objects import plain, ref
from runtime_app.adapters.payments.types import Inconclusive, Observation, ProviderRefund

EVENTS_PAGES_MOST = 20
_SLACK = timedelta(minutes=10)  # an event is written when the refund is, but by another of Stripe's clocks


@dataclass(frozen=True, slots=True)
class NoSuchEvent:
    """The events that can be asked for name none of these refunds under the key."""


@dataclass(frozen=True, slots=True)
class Made:
    """The refunds that events say were made under the key, and what said so."""

    refs: frozenset[str]
    seen: Observation


ByKey = Callable[[Sequence[ProviderRefund]], Made | NoSuchEvent | Inconclusive]


def made_under(
    key: str, nameless: Sequence[ProviderRefund], page: Callable[[dict[str, object]], Answer]
) -> Made | NoSuchEvent | Inconclusive:
    """Which of these refunds were made under `key`. A server that has no events, or lets us see none, changes nothing;
    one that does not answer is Inconclusive, for what it would have said decides.
    """
    refs, params = {refund.ref for refund in nameless}, _asked(nameless)
    named: dict[str, Any] = {}  # refund to the event that names it
    for _ in range(EVENTS_PAGES_MOST):
        answer = page(params)
        if answer.error is not None and answer.exchange.status in (400, 401, 403, 404):
            break
        entries = read_entries(answer)
        if isinstance(entries, str):
            return _made(named, key, answer.seen) if named else Inconclusive(entries, answer.seen)
        named |= {refund: event for event in entries.data if (refund := _refund_of(event, key)) in refs}
        last = entries.data[-1].get("id") if entries.data and isinstance(entries.data[-1], dict) else None
        if not entries.more or not isinstance(last, str) or last == params.get("starting_after"):
            break
        params = params | {"starting_after": last}
    return _made(named, key, answer.seen) if named else NoSuchEvent()


def _made(named: dict[str, Any], key: str, seen: Observation) -> Made:
    """The evidence holds the events that decided, and none of the others on their page."""
    said = [{"event": plain(event.get("id")), "refund": refund, "idempotency_key": key}
            for refund, event in named.items()]
    return Made(frozenset(named), replace(seen, body=said))


def _asked(nameless: Sequence[ProviderRefund]) -> dict[str, object]:
    made = [refund.created_at for refund in nameless if refund.created_at is not None]
    params: dict[str, object] = {"type": "refund.created", "limit": PAGE_SIZE}
    if len(made) == len(nameless):
        params["created[gte]"] = int((min(made) - _SLACK).timestamp())
        params["created[lte]"] = int((max(made) + _SLACK).timestamp())
    return params


def _refund_of(event: Any, key: str) -> str | None:
    """The refund that this event says was made under the key."""
    if not isinstance(event, dict) or event.get("type") != "refund.created":
        return None
    request, data = event.get("request"), event.get("data")
    refund = data.get("object") if isinstance(data, dict) else None
    if not isinstance(request, dict) or request.get("idempotency_key") != key or not isinstance(refund, dict):
        return None
    return ref(refund.get("id"))
