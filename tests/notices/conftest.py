from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.api.web_process import Web, running_web
from tests.notices.teller import Teller
from tests.own_sandbox import sandbox_of_its_own
from tests.sandbox_process import SandboxProcess
from tests.world import World


@pytest.fixture(scope="package")
def web(django_db_setup: None) -> Iterator[Web]:
    """A real web process on the test database."""
    with running_web() as started:
        yield started


@pytest.fixture(scope="package")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    """A sandbox for these tests alone: what is registered there to be told stays."""
    with sandbox_of_its_own(tmp_path_factory.mktemp("telling")) as started:
        yield started


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
