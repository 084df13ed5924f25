from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.conf import settings

from runtime_app import jobs
from tests.api.web_process import Web, running_web
from tests.notices.teller import Teller
from tests.sandbox_process import SandboxProcess, running_sandbox
from tests.world import World, use_sandbox


@pytest.fixture(scope="package")
def web(django_db_setup: None) -> Iterator[Web]:
    """A real web process on the test database."""
    with running_web() as started:
        yield started


@pytest.fixture(scope="package")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    """A sandbox for these tests alone: what is registered there to be told stays."""
    before = settings.SANDBOX_URL
    with running_sandbox(tmp_path_factory.mktemp("telling")) as started:
        use_sandbox(started)
        yield started
    settings.SANDBOX_URL = settings.ORDERS["base_url"] = before
    jobs.ports.cache_clear()


@pytest.fixture
def stripe(world: World) -> Teller:
    """What Stripe tells Amber."""
    return Teller(world.amber)


@pytest.fixture
def told_by_sandbox(world: World, web: Web, stripe: Teller) -> Teller:
    """From now on the sandbox tells Amber's door of everything that happens there. Both have the same time, wherever
    earlier tests have moved the sandbox's to."""
    world.clock(seconds=world.sandbox.advance(0)["advanced_s"])
    world.sandbox.account(
        "amber", "sk_test_world", notice_url=f"{web.url}{stripe.path}", notice_secret=stripe.secret
    )
    return stripe
