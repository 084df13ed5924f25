"""The product's doors from outside: an application with its API key, and a person with a browser's form."""

from __future__ import annotations

from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin

import requests

from runtime_app.trial.failure import TrialFailure
from runtime_app.trial.waiting import wait_for

TIMEOUT = 30.0


def local_session() -> requests.Session:
    """A session that goes to this machine itself, whatever proxy the environment names."""
    session = requests.Session()
    session.trust_env = False
    return session


class Application:
    """Speaks the API of one tenant."""

    def __init__(self, url: str, api_key: str) -> None:
        self._url = url
        self._session = local_session()
        self._session.headers["Authorization"] = f"Bearer {api_key}"

    def ask_for_refund(self, request_key: str, order_ref: str, **fields: object) -> dict[str, Any]:
        """The task, accepted now or by an earlier request with the same key."""
        body = {"workflow": "refund", "order_ref": order_ref, **fields}
        answer = self._session.post(
            f"{self._url}/api/v1/tasks", json=body, headers={"Idempotency-Key": request_key}, timeout=TIMEOUT
        )
        return self._read(answer, 202)

    def read(self, path: str) -> dict[str, Any]:
        return self._read(self._session.get(f"{self._url}/api/v1/{path}", timeout=TIMEOUT), 200)

    def task(self, task_id: str) -> dict[str, Any]:
        return self.read(f"tasks/{task_id}")

    def wait(self, task_id: str, *statuses: str, seconds: float = 60.0) -> dict[str, Any]:
        """The task once it has one of the statuses; TrialFailure when it does not get there."""
        last: dict[str, Any] = {}

        def there() -> bool:
            last.update(self.task(task_id))
            return last["status"] in statuses

        if not wait_for(there, seconds=seconds, every=0.2):
            wanted = " or ".join(statuses)
            raise TrialFailure(f"Task {task_id} is {last['status']} after {seconds:.0f} s and was to be {wanted}.")
        return last

    def _read(self, answer: requests.Response, wanted: int) -> dict[str, Any]:
        if answer.status_code != wanted:
            asked = f"{answer.request.method} {answer.url}"
            raise TrialFailure(f"{asked} answered {answer.status_code}: {answer.text[:300]}")
        return dict(answer.json())


@dataclass(slots=True)
class Form:
    """One form of a page: where it goes, and what it sends by itself, of a select the first option."""

    action: str
    method: str
    hidden: dict[str, str]
    names: set[str]


class _Forms(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self._open: Form | None = None
        self._select = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._open = Form(told.get("action", ""), told.get("method", "get").lower(), {}, set())
            self.forms.append(self._open)
        elif tag in ("input", "button", "textarea", "select") and self._open is not None and told.get("name"):
            self._open.names.add(told["name"])
            if tag == "input" and told.get("type") == "hidden":
                self._open.hidden[told["name"]] = told.get("value", "")
            self._select = told["name"] if tag == "select" else self._select
        elif tag == "option" and self._open is not None and self._select:
            self._open.hidden.setdefault(self._select, told.get("value", ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._open = None


class Person:
    """Signs in at the form and decides by the form, CSRF token and hidden inputs included, as a browser would."""

    def __init__(self, url: str, username: str, password: str) -> None:
        self._url = url
        self._session = local_session()
        done = self._submit("/accounts/login/", "password", {"username": username, "password": password})
        if done.status_code != 302:
            raise TrialFailure(f"{username} could not sign in: the form answered {done.status_code}.")

    def decide(self, approval_id: str, decision: str, reason: str = "") -> None:
        """`approve`, `reject` or `ask_input`; TrialFailure when the decision is not taken."""
        done = self._submit(f"/approvals/{approval_id}/", "decision", {"decision": decision, "reason": reason})
        if done.status_code != 302:
            raise TrialFailure(f"The decision on approval {approval_id} was answered with {done.status_code}.")

    def bring_statement(self, file: bytes) -> None:
        """Hand in a statement file of the tenant's first account that takes files; TrialFailure when it is refused."""
        done = self._submit("/reconciliation/days/", "file", {}, {"file": ("statement.xml", file)})
        if done.status_code != 302:
            raise TrialFailure(f"The statement file was answered with {done.status_code}.")

    def read(self, path: str) -> str:
        """A page's text."""
        page = self._session.get(f"{self._url}{path}", timeout=TIMEOUT)
        if page.status_code != 200:
            raise TrialFailure(f"The page {path} answered {page.status_code}.")
        return page.text

    def _submit(
        self, path: str, having: str, fields: dict[str, str], files: dict[str, tuple[str, bytes]] | None = None
    ) -> requests.Response:
        parser = _Forms()
        parser.feed(self.read(path))
        form = next((one for one in parser.forms if having in one.names and one.method == "post"), None)
        if form is None:
            raise TrialFailure(f"The page {path} has no form with {having!r}.")
        return self._session.post(
            urljoin(self._url + path, form.action),
            data={**form.hidden, **fields},
            files=files,
            headers={"Referer": self._url + path},
            allow_redirects=False,
            timeout=TIMEOUT,
        )


class Provider:
    """The sandbox's control plane."""

    def __init__(self, url: str) -> None:
        self._url = f"{url}/_sandbox"
        self._session = local_session()

    def make_order(self, order: dict[str, Any]) -> None:
        """Make the order, as trial.json tells it; the same one any number of times."""
        payment = {name: order[name] for name in ("payment_ref", "captured_minor", "account") if name in order}
        kept = ("tenant", "order_ref", "currency", "destination")
        body = {name: order[name] for name in kept if name in order} | {"payments": [payment]}
        answer = self._session.post(f"{self._url}/orders", json=body, timeout=TIMEOUT)
        if answer.status_code not in (200, 201):
            raise TrialFailure(f"The sandbox refused order {order['order_ref']}: {answer.text[:200]}")

    def make_account(self, tenant: str, api_key: str, notice_url: str, notice_secret: str) -> None:
        """Which key is whose, and where that tenant is told of what happens."""
        body = {"tenant": tenant, "api_key": api_key, "notice_url": notice_url, "notice_secret": notice_secret}
        self._session.post(f"{self._url}/accounts", json=body, timeout=TIMEOUT).raise_for_status()

    def lose_next_answer(self, payment_ref: str) -> None:
        """Fault F4: the next refund of this payment is booked, and the answer never arrives."""
        self._arm("F4", payment_ref)

    def alter_next_amount(self, payment_ref: str, amount_minor: int) -> None:
        """Fault F29: the next refund of this payment is made with this amount."""
        self._arm("F29", payment_ref, amount_minor=amount_minor)

    def _arm(self, fault: str, payment_ref: str, **values: int) -> None:
        body = {"fault": fault, "times": 1, "match": {"payment_ref": payment_ref}, **values}
        self._session.post(f"{self._url}/faults", json=body, timeout=TIMEOUT).raise_for_status()

    def refunds(self, payment_ref: str) -> list[dict[str, Any]]:
        """The money that really moved."""
        answer = self._session.get(f"{self._url}/refunds", params={"payment_ref": payment_ref}, timeout=TIMEOUT)
        answer.raise_for_status()
        return list(answer.json()["refunds"])


def one_of(contract: dict[str, Any], tenant: str, role: str) -> dict[str, Any]:
    """A person of the tenant with that role, as trial.json tells."""
    people = next(one for one in contract["tenants"] if one["slug"] == tenant)["people"]
    return dict(next(person for person in people if role in person["roles"]))


def orders_of(contract: dict[str, Any], tenant: str, currency: str) -> list[dict[str, Any]]:
    return [one for one in contract["orders"] if one["tenant"] == tenant and one["currency"] == currency]


def tenant_of(contract: dict[str, Any], slug: str) -> dict[str, Any]:
    return dict(next(one for one in contract["tenants"] if one["slug"] == slug))
