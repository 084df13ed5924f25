"""Seeding is repeatable, tells the same secrets again, and touches no database that is not a trial's."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import settings

from approvals import simulation
from approvals.in_force import in_force
from approvals.models import Policy, Team, TeamMember
from runtime_app.members import account_of_key, found_tenant
from runtime_app.models import RuntimeClock, ServiceAccount, Tenant, User
from runtime_app.trial.failure import TrialFailure
from runtime_app.trial.seed import seed
from tests.sandbox_process import SandboxProcess

pytestmark = pytest.mark.django_db


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return tmp_path / "keys.json"


def test_a_second_seeding_changes_nothing_and_tells_the_same(keys: Path, sandbox: SandboxProcess) -> None:
    first = seed(keys, sandbox.control_url)
    people, accounts = User.objects.count(), ServiceAccount.objects.count()
    made = [model.objects.count() for model in (Policy, Team, TeamMember)]
    assert seed(keys, sandbox.control_url) == first
    assert (User.objects.count(), ServiceAccount.objects.count()) == (people, accounts)
    assert [model.objects.count() for model in (Policy, Team, TeamMember)] == made


def test_one_company_has_a_policy_that_two_people_made_and_what_is_told_of_the_threshold_is_true(
    keys: Path, sandbox: SandboxProcess
) -> None:
    """The trial contract: `approval_threshold_minor` is where people begin to be asked, with and without a policy."""
    told = {tenant["slug"]: tenant["approval_threshold_minor"] for tenant in seed(keys, sandbox.control_url)["tenants"]}
    policy = Policy.objects.get()
    assert policy.state == "in_force" and policy.decided_by is not None
    assert {policy.proposed_by.username, policy.decided_by.username} == {"tom", "thea"}
    for slug, threshold in told.items():
        tenant = Tenant.objects.get(slug=slug)
        rules = in_force([tenant.pk], "refund")[tenant.pk].rules(settings.TIMING.approval_deadline)
        for currency in ("CNY", "USD", "JPY", "KWD", "EUR"):
            assert rules.threshold(currency) == threshold
            assert [r.quorum for r in rules.needed(51_700, currency)] == [1], "one approver decides each listed order"
        assert not rules.asks_password(51_700, "USD") and simulation.risky(tenant, rules) == []
    assert Team.objects.filter(tenant__slug="amber").count() == 2


def test_what_is_told_opens_the_doors(keys: Path, sandbox: SandboxProcess) -> None:
    for tenant in seed(keys, sandbox.control_url)["tenants"]:
        account = account_of_key(tenant["api_key"])
        assert account is not None and account.tenant.slug == tenant["slug"]
        for person in tenant["people"]:
            assert User.objects.get(username=person["username"]).check_password(person["password"])


def test_lost_keys_are_made_anew(keys: Path, sandbox: SandboxProcess) -> None:
    first = seed(keys, sandbox.control_url)
    keys.unlink()
    again = seed(keys, sandbox.control_url)
    for old, new in zip(first["tenants"], again["tenants"], strict=True):
        assert old["api_key"] != new["api_key"] and account_of_key(new["api_key"])
        person = new["people"][0]
        assert old["people"][0]["password"] != person["password"]
        assert User.objects.get(username=person["username"]).check_password(person["password"])


def test_a_database_that_is_not_a_trials_is_left_alone(keys: Path, sandbox: SandboxProcess) -> None:
    RuntimeClock.objects.all().delete()
    found_tenant("cedar", "Cedar Bank")
    with pytest.raises(TrialFailure, match="not a trial's"):
        seed(keys, sandbox.control_url)
    assert list(Tenant.objects.values_list("slug", flat=True)) == ["cedar"]
    assert not keys.exists()
