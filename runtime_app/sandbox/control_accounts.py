"""Registering tenants' accounts at the provider."""

from __future__ import annotations

from typing import Any

from runtime_app.sandbox.accounts import Account
from runtime_app.sandbox.app import Sandbox
from runtime_app.sandbox.asking import address, only, ref, secret
from runtime_app.sandbox.faults import Unusable
from runtime_app.sandbox.http11 import Reply
from runtime_app.sandbox.wire import json_reply


def put_account(sandbox: Sandbox, asked: dict[str, Any]) -> Reply:
    """201 with a tenant's new account, 200 when it takes the place of the tenant's earlier one."""
    only(asked, "An account", "tenant", "api_key", "notice_url", "notice_secret")
    api_key, url, signs = secret(asked, "api_key"), address(asked, "notice_url"), secret(asked, "notice_secret")
    if api_key is None or not api_key.startswith("sk_"):
        raise Unusable("`api_key` begins with sk_.")
    if (url is None) != (signs is None):
        raise Unusable("`notice_url` and `notice_secret` come together.")
    account = Account(ref(asked, "tenant"), api_key, url, signs)
    is_new = sandbox.accounts.put(account)
    return json_reply(told(account), 201 if is_new else 200)


def list_accounts(sandbox: Sandbox) -> Reply:
    return json_reply({"accounts": [told(account) for account in sandbox.accounts.all()]})


def told(account: Account) -> dict[str, Any]:
    """Without the key and the secret."""
    return {"tenant": account.tenant, "api_key_ends": account.api_key[-4:], "notice_url": account.notice_url,
            "signs_notices": account.notice_secret is not None}
