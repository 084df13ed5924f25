"""Refunds at Stripe, or at anything that speaks its v1 wire format."""

from __future__ import annotations

import hashlib
from urllib.parse import quote, urlencode
from uuid import UUID

from runtime_app.adapters.payments.stripe_client import StripeCalls
from runtime_app.adapters.payments.stripe_evidence import (
    ADAPTER_VERSION,
    Answer,
    judge_cancel,
    judge_create,
    known_currency,
    read_answer,
    why,
)
from runtime_app.adapters.payments.stripe_search import find_refunds
from runtime_app.adapters.payments.stripe_units import from_stripe, refusal, to_stripe
from runtime_app.adapters.payments.types import (
    Capabilities,
    CreateResult,
    Deadline,
    FindResult,
    Inconclusive,
    PaymentSnapshot,
    ProviderAccount,
    RefundRequest,
    RefundStatus,
)
from runtime_app.money import Money
from runtime_app.points import point

# Pinned here and not taken from the SDK: an upgrade of the SDK must not change what a frozen request means.
API_VERSION = "2026-10-28.endive"
_CAPABILITIES = Capabilities(
    key_window=24 * 3600.0, replays="all", compares_body=True, key_max_len=255, lookup="by_payment",
    lookup_consistency="strong", can_cancel=frozenset({RefundStatus.REQUIRES_ACTION}),
)


class StripePayments:
    """May be called from many threads at once."""

    name = "stripe"
    adapter_version = ADAPTER_VERSION

    def __init__(self, *, connect_timeout: float, read_timeout: float) -> None:
        self._calls = StripeCalls(connect_timeout, read_timeout, API_VERSION)

    def capabilities(self, account: ProviderAccount) -> Capabilities:
        return _CAPABILITIES

    def check_representable(self, amount: Money) -> str | None:
        return refusal(amount)

    def freeze(self, *, operation_id: UUID, payment_ref: str, amount: Money, reason: str | None) -> RefundRequest:
        """The bytes to send. The reason travels as metadata: Stripe's own field takes three words only."""
        pairs = [("payment_intent", payment_ref), ("amount", str(to_stripe(amount))),
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
        """Look through all refunds of the payment, then hold their sum against the payment's own total."""
        def page(after: str | None) -> Answer:
            params = {"payment_intent": payment_ref, "limit": 100} | ({"starting_after": after} if after else {})
            return self._get(account, "list", "/v1/refunds", params, deadline)

        return find_refunds(
            page, lambda: self.retrieve_payment(account, payment_ref=payment_ref, deadline=deadline),
            operation_ref=str(operation_id), payment_ref=payment_ref, currency=currency,
        )

    def retrieve_payment(
        self, account: ProviderAccount, *, payment_ref: str, deadline: Deadline
    ) -> PaymentSnapshot | Inconclusive:
        path = f"/v1/payment_intents/{quote(payment_ref, safe='')}"
        answer = self._get(account, "payment", path, {"expand": ["latest_charge"]}, deadline)
        if answer.ok is None:
            return Inconclusive(why(answer), answer.seen)
        body, charge = answer.ok, answer.ok.get("latest_charge")
        currency = known_currency(body.get("currency"))
        if body.get("id") != payment_ref or currency is None or not isinstance(charge, dict):
            return Inconclusive("a 200 that is not this payment", answer.seen)
        captured = from_stripe(body.get("amount_received"), currency)
        refunded = from_stripe(charge.get("amount_refunded"), currency)
        if captured is None or refunded is None or refunded.minor < 0:
            return Inconclusive("a payment without amounts", answer.seen)
        return PaymentSnapshot(payment_ref, captured, refunded, answer.seen)

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

    def _get(
        self, account: ProviderAccount, verb: str, path: str, params: dict[str, object], deadline: Deadline
    ) -> Answer:
        point(f"stripe.{verb}.before")
        seen = self._calls.call(account, "get", path, params, deadline=deadline)
        point(f"stripe.{verb}.after")
        shown = {name: value for name, value in params.items() if name != "expand"}
        return read_answer(seen, f"GET {path}" + (f"?{urlencode(shown)}" if shown else ""), API_VERSION)
