from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import requests

from runtime_app.roles import ROLES
from runtime_app.trial.places import PROJECT
from runtime_app.trial.postgres import Postgres
from runtime_app.trial.waiting import wait_for
from tests.trial.running import Trial, clean_environment, up_command

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def var() -> Iterator[Path]:
    """One folder for all tests here, so that only the first start makes and seeds everything."""
    above = Path(tempfile.mkdtemp(prefix="countersign-up-"))
    above.chmod(0o711)
    yield above / "var"
    subprocess.run(up_command(above / "var", "--stop"), env=clean_environment(), check=False)
    Postgres(above / "var" / "postgres").remove()
    shutil.rmtree(above, ignore_errors=True)


@pytest.fixture
def trial(var: Path) -> Iterator[Trial]:
    """A trial that is ready."""
    started = Trial.start(var)
    started.contract()
    yield started
    if started.process.poll() is None:
        started.interrupt()


def test_trial_json_tells_a_stranger_everything(trial: Trial) -> None:
    """The trial stack as a contract."""
    assert (trial.var / "trial.json").stat().st_mode & 0o777 == 0o600
    assert (trial.var / "keys.json").stat().st_mode & 0o777 == 0o600
    assert (trial.var / "stack.env").stat().st_mode & 0o777 == 0o600
    told = trial.contract()
    assert set(told) == {"url", "sandbox_url", "pid", "tenants", "orders"}
    assert told["pid"] == trial.process.pid
    assert len(told["tenants"]) >= 2
    for tenant in told["tenants"]:
        assert set(tenant) == {"slug", "api_key", "approval_threshold_minor", "people"}
        roles = Counter(role for person in tenant["people"] for role in person["roles"])
        assert set(roles) == set(ROLES) and roles["approver"] >= 2
        currencies = Counter(order["currency"] for order in told["orders"] if order["tenant"] == tenant["slug"])
        assert currencies == {"CNY": 10, "USD": 10, "JPY": 10, "KWD": 10}
        bearer = {"Authorization": f"Bearer {tenant['api_key']}"}
        assert requests.get(f"{told['url']}/api/v1/tasks", headers=bearer, timeout=30).status_code == 200
    assert set(told["orders"][0]) == {"tenant", "order_ref", "payment_ref", "currency", "captured_minor"}
    people = Counter(person["username"] for tenant in told["tenants"] for person in tenant["people"])
    assert 2 in people.values(), "one person belongs to both"
    assert requests.get(f"{told['sandbox_url']}/_sandbox", timeout=30).status_code == 200


def test_the_story_leaves_no_page_empty(trial: Trial) -> None:
    told = trial.contract()
    bearer = {"Authorization": f"Bearer {told['tenants'][0]['api_key']}"}
    tasks = requests.get(f"{told['url']}/api/v1/tasks", headers=bearer, timeout=30).json()["tasks"]
    found = Counter(task["status"] for task in tasks)
    assert found["completed"] == 2 and found["waiting_approval"] == 1 and found["waiting_input"] == 1


def test_ctrl_c_leaves_no_process_and_the_next_start_goes_on(var: Path) -> None:
    first = Trial.start(var)
    before = first.contract()
    assert len(first.left()) > 5
    assert first.interrupt() == 0
    assert first.left() == []
    assert not (var / "trial.json").exists() and not (var / "stack.env").exists()
    second = Trial.start(var)
    after = second.contract()
    assert after["tenants"] == before["tenants"], "the same keys and passwords are told again"
    bearer = {"Authorization": f"Bearer {after['tenants'][0]['api_key']}"}
    tasks = requests.get(f"{after['url']}/api/v1/tasks", headers=bearer, timeout=30).json()["tasks"]
    assert len(tasks) == 4, "the first start's story is still there and was not told again"
    assert second.interrupt(signal.SIGTERM) == 0
    assert second.left() == []


def test_a_killed_supervisor_takes_everything_down_and_comes_up_again(trial: Trial, var: Path) -> None:
    pid = int((var / "supervisord.pid").read_text())
    psutil.Process(pid).kill()
    assert trial.process.wait(60) == 1
    assert trial.left() == []
    assert "The supervisor was killed" in trial.output.read_text()
    again = Trial.start(var)
    again.contract()
    assert again.interrupt() == 0


def test_a_killed_up_does_not_stand_in_the_way_of_the_next(trial: Trial, var: Path) -> None:
    trial.process.kill()
    trial.process.wait(30)
    again = Trial.start(var)
    (var / "trial.json").unlink(missing_ok=True)  # the killed one's
    again.contract()
    assert again.interrupt() == 0
    assert again.left() == []


def test_a_stack_killed_whole_comes_up_again(trial: Trial, var: Path) -> None:
    trial.kill_everything()
    (var / "trial.json").unlink(missing_ok=True)
    again = Trial.start(var)
    again.contract()
    assert again.interrupt() == 0


def test_what_dies_is_started_again(trial: Trial) -> None:
    told = trial.contract()
    workers = [one for one in trial.left() if "worker" in one.cmdline()]
    assert len(workers) == 2
    for worker in workers:
        worker.kill()
    psutil.wait_procs(workers, timeout=30)

    def both() -> bool:
        return len([one for one in trial.left() if "worker" in one.cmdline()]) == 2

    assert wait_for(both, seconds=30)
    assert requests.get(f"{told['url']}/healthz", timeout=30).status_code == 200


def test_a_second_up_in_the_same_folder_says_who_runs_there(trial: Trial, var: Path) -> None:
    refused = subprocess.run(up_command(var), env=clean_environment(), capture_output=True, text=True, timeout=60)
    assert refused.returncode != 0
    assert f"A trial already runs in {var} (process {trial.process.pid})" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert (var / "trial.json").exists(), "the running one is left alone"


def test_down_stops_the_trial_that_runs(trial: Trial, var: Path) -> None:
    stopped = subprocess.run(
        up_command(var, "--stop"), env=clean_environment(), capture_output=True, text=True, timeout=120
    )
    assert stopped.returncode == 0 and "Stopped." in stopped.stdout
    assert trial.process.wait(30) == 0
    assert trial.left() == []


def test_a_taken_port_is_one_sentence(var: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = subprocess.run(
            up_command(var, port=port), env=clean_environment(), capture_output=True, text=True, timeout=120
        )
    assert refused.returncode != 0
    assert f"Port {port} is taken by another program: choose another with PORT=…" in refused.stderr.splitlines()[-1]
    assert "Traceback" not in refused.stderr


def test_make_down_without_a_trial_says_so(tmp_path: Path) -> None:
    command = ["make", "--no-print-directory", "-C", str(PROJECT), "down", f"VAR={tmp_path / 'none'}"]
    done = subprocess.run(command, env=clean_environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "Nothing runs here." in done.stdout
