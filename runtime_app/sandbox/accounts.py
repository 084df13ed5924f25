"""Who may see what: an API key that is registered sees its tenants' things in lists; any other key sees everything."""

from __future__ import annotations

from dataclasses import dataclass, field

from runtime_app.sandbox.http11 import Request
from runtime_app.sandbox.store import Store


@dataclass(frozen=True, slots=True)
class Account:
    """One tenant's account at the provider; notices go to `notice_url` when there is one."""

    tenant: str
    api_key: str = field(repr=False)
    notice_url: str | None = None
    notice_secret: str | None = field(default=None, repr=False)


class Accounts:
    """All accounts, kept in memory beside their table, because every list asks for them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._accounts = {str(row["tenant"]): Account(*row) for row in store.all(
            "SELECT tenant, api_key, notice_url, notice_secret FROM accounts ORDER BY tenant")}

    def put(self, account: Account) -> bool:
        """Keep this account, in place of its tenant's earlier one; says whether it is new."""
        is_new = account.tenant not in self._accounts
        self._store.run("INSERT OR REPLACE INTO accounts VALUES (?, ?, ?, ?)", account.tenant, account.api_key,
                        account.notice_url, account.notice_secret)
        self._accounts[account.tenant] = account
        return is_new

    def all(self) -> list[Account]:
        return sorted(self._accounts.values(), key=lambda account: account.tenant)

    def of(self, tenant: str) -> Account | None:
        return self._accounts.get(tenant)

    @property
    def listening(self) -> bool:
        """Whether anybody wants notices."""
        return any(account.notice_url for account in self._accounts.values())

    def tenants(self, request: Request) -> tuple[str, ...] | None:
        """Whose things the key of this request sees; None for everybody's."""
        if not self._accounts:
            return None
        key = request.headers.get("authorization", "").partition(" ")[2]
        return tuple(a.tenant for a in self.all() if a.api_key == key) or None

    def facts(self, request: Request) -> dict[str, str]:
        """The tenant that asks, when its key says so."""
        tenants = self.tenants(request) or ()
        return {"tenant": tenants[0]} if len(tenants) == 1 else {}
