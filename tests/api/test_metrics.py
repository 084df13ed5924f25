"""What a monitor may count: nothing of a tenant's, and nothing without the token."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.test import Client

from tests.world import World


def test_a_monitor_with_the_token_counts_what_waits(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "METRICS_TOKEN", "a-token-of-the-monitor")
    world.approval(world.ask(world.order(), 6000))
    answer = Client().get("/metrics", headers={"authorization": "Bearer a-token-of-the-monitor"})
    assert answer.status_code == 200
    text = answer.content.decode()
    assert 'countersign_tasks{status="waiting_approval"} 1' in text
    assert "amber" not in text and "ORD-" not in text


@pytest.mark.parametrize("token", ["", "a-token-of-the-monitor"])
def test_without_the_token_there_is_nothing(world: World, monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    monkeypatch.setattr(settings, "METRICS_TOKEN", token)
    for headers in ({}, {"authorization": "Bearer "}, {"authorization": "Bearer wrong"}):
        assert Client().get("/metrics", headers=headers).status_code == 404
