"""F42 to F48: what is wrong with a statement, from its first page to its last."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.conftest import Tenant

URL = "/v1/balance_transactions"
DAY = 86400


class Day:
    """One day of a tenant's statement with three refunds in it, read page by page as an adapter would."""

    def __init__(self, tenant: Tenant) -> None:
        self.tenant = tenant
        self.payment = tenant.payment()
        self.refunds = [tenant.wire.refund(self.payment, n, operation=f"op-{self.payment}-{n}").json()
                        for n in (1, 2, 3)]
        self.begin = self.refunds[0]["created"] // DAY * DAY

    def read(self, day: int = 0, limit: int = 100, status: int = 200) -> list[dict[str, Any]]:
        lines: list[dict[str, Any]] = []
        self.totals: list[int] = []
        more, after = True, ""
        while more:
            page = self.tenant.wire.send("GET", (
                f"{URL}?limit={limit}&expand[0]=data.source&include[0]=total_count&created[gte]="
                f"{self.begin + day * DAY}&created[lt]={self.begin + (day + 1) * DAY}{after}"))
            assert page.status_code == status
            if status != 200:
                return [page.json()["error"]]
            lines += page.json()["data"]
            self.totals.append(page.json()["total_count"])
            more, after = page.json()["has_more"], f"&starting_after={lines[-1]['id']}" if lines else ""
        return lines

    def arm(self, code: str, **more: Any) -> None:
        scope = {} if code in ("F43", "F46", "F47") else {"payment_ref": self.payment}
        self.tenant.wire.sandbox.fault(code, match=scope, **more)


@pytest.fixture
def day(tenant: Tenant) -> Day:
    # Early in a day of the sandbox's clock, so that the whole test happens on one day.
    now = tenant.wire.refund(tenant.payment()).json()["created"]
    tenant.wire.sandbox.advance(DAY - now % DAY + 3600)
    return Day(tenant)


def amounts(lines: list[dict[str, Any]]) -> list[int]:
    return [line["amount"] for line in lines]


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_an_honest_day_is_complete(day: Day, limit: int) -> None:
    assert amounts(day.read(limit=limit)) == [-3, -2, -1] and set(day.totals) == {3}


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_f42_leaves_one_line_out(day: Day, limit: int) -> None:
    """F42: the total agrees with what is shown, so only our own books can tell."""
    day.tenant.wire.sandbox.fault("F42", match={"operation_id": f"op-{day.payment}-2"})
    assert amounts(day.read(limit=limit)) == [-3, -1] and set(day.totals) == {2}
    assert amounts(day.read()) == [-3, -2, -1], "once"


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_f43_adds_a_refund_that_nobody_made(day: Day, limit: int) -> None:
    """F43: a line without an operation and without a refund."""
    day.arm("F43", amount_minor=777)
    lines = day.read(limit=limit)
    assert sorted(amounts(lines)) == [-777, -3, -2, -1] and set(day.totals) == {4}
    extra = next(line for line in lines if line["amount"] == -777)
    assert day.begin <= extra["created"] < day.begin + DAY
    assert extra["source"]["object"] == "refund" and extra["source"]["metadata"] == {}
    assert day.tenant.wire.send("GET", f"/v1/refunds/{extra['source']['id']}").status_code == 404


def test_f43_says_the_same_whenever_the_day_is_read(day: Day) -> None:
    day.arm("F43", payment_ref=day.payment, times=2)
    first, second = day.read(), day.read()
    assert first == second and first != day.read()
    assert [line["source"]["payment_intent"] for line in first] == [day.payment] * 4


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_f44_shows_a_line_twice(day: Day, limit: int) -> None:
    """F44: the same ids, so that reading it into our books may count it once."""
    day.arm("F44")
    lines = day.read(limit=limit)
    assert amounts(lines) == [-3, -3, -2, -1] and lines[0] == lines[1] and set(day.totals) == {4}


def test_f45_shows_a_line_on_the_next_day(day: Day) -> None:
    """F45: late, and then there for good."""
    day.arm("F45")
    assert amounts(day.read()) == [-2, -1] and set(day.totals) == {2}
    assert amounts(day.read(1)) == [-3] and amounts(day.read()) == [-2, -1]


@pytest.mark.parametrize("by", [1, -1])
def test_f46_claims_another_total(day: Day, by: int) -> None:
    """F46: completeness can not be shown."""
    day.arm("F46", by=by)
    assert amounts(day.read(limit=2)) == [-3, -2, -1] and set(day.totals) == {3 + by}
    assert day.read() and set(day.totals) == {3}


def test_f46_waits_for_a_statement_whose_total_is_asked_for(day: Day) -> None:
    day.arm("F46")
    day.tenant.wire.listed(URL)
    assert day.read() and day.totals == [4]


def test_f47_has_no_day(day: Day) -> None:
    """F47: empty, or said to be missing."""
    day.arm("F47")
    assert day.read() == [] and day.totals == [0]
    for status in (404, 409, 503):
        day.arm("F47", how="unavailable", status=status)
        assert day.read(status=status)[0]["code"] == "balance_transactions_unavailable"
    assert len(day.read()) == 3


@pytest.mark.parametrize(("seconds", "goes_to"), [(1, 1), (0, 1), (-1, -1)])
def test_f48_dates_a_line_over_midnight(day: Day, seconds: int, goes_to: int) -> None:
    """F48, C41: a second over the edge of the day."""
    day.arm("F48", seconds=seconds)
    assert amounts(day.read()) == [-2, -1]
    moved = next(line for line in day.read(goes_to) if line["amount"] == -3)
    assert moved["created"] == day.begin + (DAY if goes_to > 0 else 0) + seconds


def test_several_faults_meet_one_statement(day: Day) -> None:
    day.arm("F42")
    day.arm("F43")
    day.arm("F46", by=5)
    assert sorted(amounts(day.read())) == [-1000, -2, -1] and day.totals == [8]


def test_a_fault_for_one_tenant_meets_no_other(day: Day) -> None:
    sandbox = day.tenant.wire.sandbox
    sandbox.fault("F47", match={"tenant": "somebody-else"})
    sandbox.fault("F42", match={"tenant": "somebody-else"})
    assert len(day.read()) == 3 and len(sandbox.control("GET", "").json()["armed"]) == 2
    sandbox.fault("F47", match={"tenant": day.tenant.slug})
    assert day.read() == []


@pytest.mark.parametrize("asked", [
    {"fault": "F46", "match": {"payment_ref": "pi_1"}}, {"fault": "F46", "by": "1"}, {"fault": "F46", "by": 10**6},
    {"fault": "F48", "seconds": 90_000}, {"fault": "F45", "days": 0}, {"fault": "F47", "status": 200},
    {"fault": "F42", "on": "list"}, {"fault": "F37", "copies": 1000}, {"fault": "F36", "on": "create"},
    {"fault": "F49", "what": "both"}, {"fault": "F49", "on": "list"}, {"fault": "F34"},
    {"fault": "F49", "what": "account", "on": "payment"},
], ids=str)
def test_a_fault_that_cannot_be_is_refused(tenant: Tenant, asked: dict[str, Any]) -> None:
    answer = tenant.wire.sandbox.control("POST", "/faults", asked)
    assert answer.status_code == 422 and answer.json()["error"].endswith(".")
