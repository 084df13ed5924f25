"""The official Stripe SDK, made to send exactly what was frozen, once, before a deadline, and to keep the evidence."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import Any

import stripe

from runtime_app.adapters.payments.types import Deadline, ProviderAccount
from runtime_app.adapters.wire import Exchange, exchange

# The SDK would send timings and facts about this machine with every request.
stripe.enable_telemetry = False
# Its lower levels log addresses and whole bodies; what may be kept is the evidence row.
logging.getLogger("stripe").setLevel(logging.WARNING)

CLIENTS_MOST = 1000


class _Sender(stripe.HTTPClient):
    """What the SDK sends through. It puts a frozen body in place of the SDK's own encoding, byte for byte."""

    name = "requests"

    def __init__(self, connect_timeout: float, read_timeout: float) -> None:
        super().__init__()
        self.connect_timeout = connect_timeout
        self.read_timeout = read_timeout
        self.now = threading.local()  # frozen, deadline and seen belong to the call that this thread is making

    def request(
        self, method: str, url: str, headers: Mapping[str, str] | None, post_data: Any = None, *,
        _usage: list[str] | None = None,
    ) -> tuple[str, int, Mapping[str, str]]:
        # From here on, whatever interrupts this (a job's time limit too) may do so after the bytes have left.
        self.now.seen = Exchange(cause="interrupted while sending or waiting")
        self.now.seen = seen = exchange(
            method.upper(), url, headers=headers or {}, body=self.now.frozen, connect=self.connect_timeout,
            read=self.read_timeout, send_before=self.now.deadline.at,
        )
        if seen.status is None:
            # The SDK's own exceptions have no annotations.
            raise stripe.APIConnectionError(seen.cause, should_retry=False)  # type: ignore[no-untyped-call]
        return seen.content.decode("utf-8", "replace"), seen.status, seen.headers

    def close(self) -> None:
        """Sessions belong to threads and end with them."""


class StripeCalls:
    """One SDK client an account, shared by all threads."""

    def __init__(self, connect_timeout: float, read_timeout: float, api_version: str) -> None:
        self._sender = _Sender(connect_timeout, read_timeout)
        self._api_version = api_version
        self._clients: dict[tuple[str, str], stripe.StripeClient] = {}
        self._lock = threading.Lock()

    def call(
        self, account: ProviderAccount, method: str, path: str, params: Mapping[str, Any], *, deadline: Deadline,
        frozen: bytes | None = None, idempotency_key: str | None = None, api_version: str | None = None,
    ) -> Exchange:
        """One call, never repeated. The SDK's exceptions are dropped: the exchange says more than they do."""
        now = self._sender.now
        now.frozen, now.deadline, now.seen = frozen, deadline, None
        try:
            options: dict[str, Any] = {"max_network_retries": 0, "stripe_version": api_version or self._api_version}
            if idempotency_key is not None:
                options["idempotency_key"] = idempotency_key
            self._client(account).raw_request(method, path, **params, **options)
        except Exception as error:
            seen: Exchange | None = now.seen
            if seen is None:  # refused by the SDK itself: nothing was sent
                return Exchange(cause=f"not sent: {type(error).__name__}", untouched=True)
            if seen.status is None and not isinstance(error, stripe.APIConnectionError):
                seen.cause = f"{seen.cause}: {type(error).__name__}"
            return seen
        else:
            answered: Exchange = now.seen
            return answered
        finally:
            now.frozen = now.deadline = now.seen = None

    def _client(self, account: ProviderAccount) -> stripe.StripeClient:
        which = (account.api_key, account.base_url)
        with self._lock:
            client = self._clients.get(which)
            if client is None:
                if len(self._clients) >= CLIENTS_MOST:
                    self._clients.clear()
                client = self._clients[which] = stripe.StripeClient(
                    account.api_key, http_client=self._sender, max_network_retries=0,
                    base_addresses={"api": account.base_url.rstrip("/")} if account.base_url else None,
                )
        return client
