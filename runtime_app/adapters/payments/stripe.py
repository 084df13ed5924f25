"""Refunds at Stripe, or at anything that speaks its v1 wire format."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import date, datetime
from urllib.parse import quote, urlencode
from uuid import UUID

from runtime_app.adapters.payments.days import known_zone
from runtime_app.adapters.payments.stripe_client import StripeCalls
from runtime_app.adapters.payments.stripe_events import made_under
from runtime_app.adapters.payments.stripe_evidence import (
    ADAPTER_VERSION,
    Answer,
    judge_cancel,
    judge_create,
    read_answer,
    why,
)
from runtime_app.adapters.payments.stripe_lists import PAGE_SIZE, Page, refund_page
from runtime_app.adapters.payments.stripe_notice import parse_notice
from runtime_app.adapters.payments.stripe_objects import Garbled, names_charge, read_refund
from runtime_app.adapters.payments.stripe_payment import read_charge, read_intent
from runtime_app.adapters.payments.stripe_search import find_refunds
from runtime_app.adapters.payments.stripe_settings import can_filter, wrong_settings
from runtime_app.adapters.payments.stripe_statement import day_params, read_day
from runtime_app.adapters.payments.stripe_units import refusal, to_stripe
from runtime_app.adapters.payments.types import (
    BadStatement,
    Capabilities,
    CreateResult,
    Deadline,
    FindResult,
    Found,
    Inconclusive,
    NoSuchRefund,
    Notice,
    NoticeRefused,
    PaymentSnapshot,
    ProviderAccount,
    RefundPage,
    RefundRequest,
    RefundStatus,
    Statement,
)
from runtime_app.money import Money
from runtime_app.points import point

# Pinned here and not taken from the SDK: an upgrade of the SDK must not change what a frozen request means.
API_VERSION = "2026-10-28.endive"
_CAPABILITIES = Capabilities(
    key_window=24 * 3600.0, replays="all", compares_body=True, key_max_len=255, lookup="by_payment",
    lookup_consistency="strong", can_cancel=frozenset({RefundStatus.REQUIRES_ACTION}), sweeps=True, notices=True,
    statement="list",
)


class StripePayments:
    """May be called from many threads at once."""

    name = "stripe"
    adapter_version = ADAPTER_VERSION

    def __init__(self, *, connect_timeout: float, read_timeout: float) -> None:
        self._calls = StripeCalls(connect_timeout, read_timeout, API_VERSION)

    def capabilities(self, account: ProviderAccount) -> Capabilities:
        return _CAPABILITIES

    def check_account(self, account: ProviderAccount) -> Mapping[str, str]:
        return wrong_settings(account)

    def check_representable(self, amount: Money) -> str | None:
        return refusal(amount)

    def check_destination(self, destination: str | None) -> str | None:
        """Stripe pays back to where the money came from; a destination is for people to read."""
        return None

    def freeze(
        self, account: ProviderAccount, *, operation_id: UUID, payment_ref: str, amount: Money, reason: str | None,
        destination: str | None = None,
    ) -> RefundRequest:
        """The bytes to send. The reason travels as metadata: Stripe's own field takes three words only."""
        pairs = [(_payment_field(payment_ref), payment_ref), ("amount", str(to_stripe(amount))),
                 ("metadata[operation_id]", str(operation_id))]
        if reason:
            pairs.append(("metadata[reason]", reason[:500]))
        body = urlencode(pairs, errors="replace").encode("ascii")
        return RefundRequest(operation_id, payment_ref, amount, body, hashlib.sha256(body).hexdigest(), API_VERSION)

    def create_refund(
        self, account: ProviderAccount, request: RefundRequest, *, idempotency_key: str, resend: bool,
        deadline: Deadline,
    ) -> CreateResult:
        point("stripe.create.before")
        seen = self._calls.call(
            account, "post", "/v1/refunds", {}, deadline=deadline, frozen=request.body,
            idempotency_key=idempotency_key, api_version=request.api_version,
        )
        point("stripe.create.after")
        return judge_create(read_answer(seen, "POST /v1/refunds", request.api_version), request, resend=resend)

    def find_refunds(
        self, account: ProviderAccount, *, operation_id: UUID, payment_ref: str, currency: str, deadline: Deadline
    ) -> FindResult:
        """Look through all refunds of the payment, then hold their sum against the payment's own total. The events by
        key are asked only when a refund there carries no operation's id.
        """
        key = str(operation_id)  # the product's key is the operation's id, always
        return find_refunds(
            self._refunds(account, payment_ref, deadline),
            lambda: self.retrieve_payment(account, payment_ref=payment_ref, deadline=deadline),
            lambda nameless: made_under(
                key, nameless, lambda params: self._get(account, "events", "/v1/events", params, deadline)),
            operation_ref=key, payment_ref=payment_ref, currency=currency,
        )

    def retrieve_refund(
        self, account: ProviderAccount, *, refund_ref: str, deadline: Deadline
    ) -> Found | NoSuchRefund | Inconclusive:
        answer = self._get(account, "retrieve", f"/v1/refunds/{quote(refund_ref, safe='')}", {}, deadline)
        if answer.ok is None:
            missing = answer.exchange.status == 404 and answer.error is not None
            return NoSuchRefund(answer.seen) if missing else Inconclusive(why(answer), answer.seen)
        try:
            refund = read_refund(answer.ok)
        except Garbled as garbled:
            return Inconclusive(f"a 200 that is no refund: {garbled}", answer.seen)
        if refund.ref != refund_ref:
            return Inconclusive("a 200 that is not this refund", answer.seen)
        return Found((refund,), answer.seen)

    def list_refunds(
        self, account: ProviderAccount, *, payment_ref: str | None, since: datetime | None, cursor: str | None,
        deadline: Deadline,
    ) -> RefundPage | Inconclusive:
        """`since` is never sent: newest first, everything after it has to be read anyway, and not every server that
        speaks this format can filter.
        """
        answer = self._refunds(account, payment_ref, deadline)(cursor)
        return refund_page(answer, payment_ref=payment_ref, since=since, cursor=cursor)

    def retrieve_payment(
        self, account: ProviderAccount, *, payment_ref: str, deadline: Deadline
    ) -> PaymentSnapshot | Inconclusive:
        named = quote(payment_ref, safe="")
        if names_charge(payment_ref):
            return read_charge(self._get(account, "payment", f"/v1/charges/{named}", {}, deadline), payment_ref)
        params: dict[str, object] = {"expand": ["latest_charge"]}
        return read_intent(self._get(account, "payment", f"/v1/payment_intents/{named}", params, deadline), payment_ref)

    def cancel_refund(
        self, account: ProviderAccount, *, refund_ref: str, idempotency_key: str, deadline: Deadline
    ) -> CreateResult:
        """Declined with a refund: it is cancelled, or had failed. Declined without one: it cannot be cancelled."""
        path = f"/v1/refunds/{quote(refund_ref, safe='')}/cancel"
        point("stripe.cancel.before")
        seen = self._calls.call(account, "post", path, {}, deadline=deadline, frozen=b"",
                                idempotency_key=idempotency_key)
        point("stripe.cancel.after")
        return judge_cancel(read_answer(seen, f"POST {path}", API_VERSION), refund_ref)

    def read_statement(
        self, account: ProviderAccount, *, day: date, deadline: Deadline
    ) -> Statement | BadStatement | Inconclusive:
        zone = known_zone(account.time_zone)
        if zone is None:
            return BadStatement(f"There is no time zone {account.time_zone!r}, so this account has no days.")
        params = day_params(day, zone, filtered=can_filter(account))
        page = self._pages(account, "statement", "/v1/balance_transactions", params, deadline)
        return read_day(page, day, zone, filtered=can_filter(account))

    def parse_statement(self, account: ProviderAccount, raw: bytes) -> Statement | BadStatement:
        return BadStatement("Stripe's statements are read from Stripe and not uploaded.")

    def parse_notice(
        self, account: ProviderAccount, *, headers: Mapping[str, str], body: bytes, now: datetime
    ) -> Notice | NoticeRefused:
        return parse_notice(account, headers, body, now)

    def _refunds(self, account: ProviderAccount, payment_ref: str | None, deadline: Deadline) -> Page:
        params: dict[str, object] = {"limit": PAGE_SIZE}
        if payment_ref is not None:
            params = {_payment_field(payment_ref): payment_ref} | params
        return self._pages(account, "list", "/v1/refunds", params, deadline)

    def _pages(
        self, account: ProviderAccount, verb: str, path: str, params: dict[str, object], deadline: Deadline
    ) -> Page:
        return lambda after: self._get(
            account, verb, path, params | ({"starting_after": after} if after else {}), deadline)

    def _get(
        self, account: ProviderAccount, verb: str, path: str, params: dict[str, object], deadline: Deadline
    ) -> Answer:
        point(f"stripe.{verb}.before")
        seen = self._calls.call(account, "get", path, params, deadline=deadline)
        point(f"stripe.{verb}.after")
        shown = {name: value for name, value in params.items() if name not in ("expand", "include")}
        return read_answer(seen, f"GET {path}" + (f"?{urlencode(shown)}" if shown else ""), API_VERSION)


def _payment_field(payment_ref: str) -> str:
    return "charge" if names_charge(payment_ref) else "payment_intent"
