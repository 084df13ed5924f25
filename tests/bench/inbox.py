"""How long an approver's pages take with 36,000 open approvals, as a multiple of what they take with one page of them,
and with ten, whose page has fewer rows to write."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from tests.bench import waiting
from tests.bench.figures import Figure
from tests.bench.rig import Rig, empty

FEW, PAGE, MANY, LOOKS = 10, 50, 36_000, 15
# Ada may decide all of them; Rita has asked for all of them, so that the inbox looks in vain.
PAGES = {
    "inbox": ("ada", "/approvals/"), "inbox_mine": ("ada", "/approvals/?show=mine"),
    "inbox_open": ("ada", "/approvals/?show=open"), "inbox_filtered": ("ada", "/approvals/?q=W-none"),
    "inbox_in_vain": ("rita", "/approvals/"), "inbox_decision": ("ada", ""),
}


def measure(rig: Rig, say: Callable[[str], None]) -> list[Figure]:
    empty(rig.tell)
    houses = [_house(rig, f"bench-{count}", count, say) for count in (FEW, PAGE, MANY)]
    rig.tell.execute("VACUUM (ANALYZE) runtime_app_task, approvals_approval")
    figures = []
    for name, (who, address) in PAGES.items():
        look = [_look(house[who], address) for house in houses]
        looks = [[one() for one in look] for _ in range(LOOKS + 3)][3:]  # the first few warm up
        say(f"  {name}: " + ", ".join(
            f"{median(took) * 1000:.0f} ms with {count}"
            for took, count in zip(zip(*looks, strict=True), (FEW, PAGE, MANY), strict=True)))
        # Who finds nothing to decide has had some thousands looked at, which is bounded and is not a page's price.
        most = None if name == "inbox_in_vain" else 1.5
        figures.append(Figure(name, median(many / page for _, page, many in looks), f"times {PAGE} open", most=most))
        figures.append(Figure(f"{name}_ten", median(many / few for few, _, many in looks), f"times {FEW} open"))
    empty(rig.tell)
    return figures


@dataclass(frozen=True, slots=True)
class Reader:
    """Somebody at a browser, and the approval of theirs with the nearest deadline."""

    client: Any
    nearest: str


def _house(rig: Rig, slug: str, count: int, say: Callable[[str], None]) -> dict[str, Reader]:
    """A tenant with so many open approvals, and its people, signed in."""
    from django.test import Client

    from runtime_app import members

    tenant = members.found_tenant(slug, slug.title(), approval_threshold_minor=0)
    people = {
        name: members.add_person(tenant, f"{name}-{slug}", None, roles)
        for name, roles in (("ada", ["approver"]), ("rita", ["requester", "approver"]))
    }
    began = time.monotonic()
    waiting.approvals(tenant, people["rita"], count)
    say(f"  {count} wait after {time.monotonic() - began:.0f} s")
    nearest = rig.ask(
        "SELECT id::text FROM approvals_approval WHERE tenant_id = %s ORDER BY deadline_at, id LIMIT 1", [tenant.id])
    found = {}
    for name, person in people.items():
        found[name] = Reader(Client(SERVER_NAME="localhost"), nearest)
        found[name].client.force_login(person)
    return found


def _look(reader: Reader, address: str) -> Callable[[], float]:
    """Open the page; the seconds that it took."""

    def look() -> float:
        began = time.perf_counter()
        answer = reader.client.get(address or f"/approvals/{reader.nearest}/")
        took = time.perf_counter() - began
        if answer.status_code != 200:
            raise RuntimeError(f"{address} answers {answer.status_code}")
        return took

    return look
