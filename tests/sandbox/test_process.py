"""The sandbox as a process: it survives being killed, moves clocks, and says why it cannot start."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import requests

from tests.adapters.bank_process import TODAY, running_bank
from tests.sandbox.conftest import Wire
from tests.sandbox_process import ROOT, SandboxProcess, running_sandbox
from tests.stack_plugin import Stack


@pytest.fixture
def own(tmp_path: Path) -> Iterator[SandboxProcess]:
    with running_sandbox(tmp_path) as running:
        yield running


def test_everything_that_was_answered_survives_kill_9(own: SandboxProcess) -> None:
    wire = Wire(own)
    payment = wire.payment()
    own.fault("F20", match={"payment_ref": payment, "operation_id": "later"}, seconds=7200)
    own.fault("F21", match={"payment_ref": payment}, seconds=7200)
    pending = wire.refund(payment, 10, key="pending").json()
    done = wire.refund(payment, 20, key="done").json()
    with pytest.raises(requests.ConnectionError):
        wire.refund(payment, 30, key="later", operation="later")
    own.advance(3600)
    log = own.requests()
    url = own.url
    own.kill(signal.SIGKILL)
    own.start()
    assert own.url == url
    assert own.requests() == log
    replay = wire.refund(payment, 20, key="done")
    assert replay.json() == done and replay.headers["idempotent-replayed"] == "true"
    assert wire.moved(payment) == 30
    own.advance(3601)
    assert wire.moved(payment) == 60, "the clock and the queue were kept"
    assert wire.send("GET", f"/v1/refunds/{pending['id']}").json()["status"] == "succeeded"


def test_it_ends_on_sigterm_and_sigint_with_0(own: SandboxProcess) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        os.kill(own.pid, number)
        process = own._process
        assert process is not None and process.wait(20) == 0
        own.kill()
        own.start()


def test_a_taken_port_is_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = start(tmp_path / "x.db", "--port", str(taken.getsockname()[1]))
    assert ended.returncode == 1
    assert "cannot listen" in ended.stderr and "Traceback" not in ended.stderr


def test_a_file_that_cannot_be_used_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "no.db").write_text("this is no database, and long enough to be seen as none" * 20)
    for path in (tmp_path / "no.db", tmp_path / "missing" / "x.db"):
        ended = start(path)
        assert ended.returncode == 1
        assert "cannot use" in ended.stderr and "Traceback" not in ended.stderr


def start(db: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "runtime_app.sandbox", "--db", str(db), *args], cwd=ROOT, capture_output=True, text=True,
        timeout=30, check=False,
    )


def test_it_needs_no_django(own: SandboxProcess) -> None:
    """Adapters and sandbox know no Django: the trial's provider must run beside a broken product."""
    code = ("import sys, runtime_app.sandbox.server, runtime_app.adapters.payments, runtime_app.adapters.orders\n"
            "sys.exit(any(name.split('.')[0] == 'django' for name in sys.modules))")
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=30, check=False).returncode == 0


@pytest.mark.parametrize("raw", [
    b"\0\0\0\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/1.1\r\nnocolon\r\n\r\n", b"GET / SPDY/3\r\n\r\n",
    b"POST / HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n", b"POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
    b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", b"x" * 70_000,
], ids=lambda r: repr(r[:24]))
def test_bytes_that_are_no_request_get_a_4xx_and_harm_nobody(sandbox_of_file: SandboxProcess, raw: bytes) -> None:
    host, _, port = sandbox_of_file.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(raw)
        assert connection.recv(100).startswith(b"HTTP/1.1 4")
    assert sandbox_of_file.control("GET", "").status_code == 200


def test_requests_of_one_connection_are_answered_in_their_order(sandbox_of_file: SandboxProcess) -> None:
    host, _, port = sandbox_of_file.url.removeprefix("http://").partition(":")
    pipelined = b"".join(b"GET /orders/amber/%d HTTP/1.1\r\nHost: x\r\n\r\n" % n for n in range(3))
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        for part in (pipelined[:50], pipelined[50:], b"GET /_sandbox HTTP/1.1\r\nConnection: close\r\n\r\n"):
            connection.sendall(part)
        received = b""
        while piece := connection.recv(65536):
            received += piece
    assert received.count(b"HTTP/1.1 404") == 3 and received.rindex(b"HTTP/1.1 404") < received.index(b"HTTP/1.1 200")


@pytest.fixture
def product_clock(stack: Stack) -> Iterator[str]:
    """A database that has a clock row and nothing else of the product."""
    name = f"sandbox_clock_{os.getpid()}"
    with psycopg.connect(stack.database_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        url = psycopg.conninfo.make_conninfo(stack.database_url, dbname=name)
        with psycopg.connect(url, autocommit=True) as fresh:
            fresh.execute("CREATE TABLE runtime_clock (advanced interval NOT NULL)")
        yield url
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_moving_the_clock_moves_the_products_clock_too(tmp_path: Path, product_clock: str) -> None:
    with running_sandbox(tmp_path, {"COUNTERSIGN_CLOCK_DATABASE_URL": product_clock}) as sandbox:
        assert sandbox.advance(60)["product_clock_moved"] is False, "without its row there is no trial to move"
        with psycopg.connect(product_clock, autocommit=True) as connection:
            connection.execute("INSERT INTO runtime_clock VALUES ('0')")
            assert sandbox.advance(90.5)["product_clock_moved"] is True
            row = connection.execute("SELECT extract(epoch FROM advanced)::float8 FROM runtime_clock").fetchone()
    assert row == (90.5,)


def test_a_clock_that_cannot_be_reached_is_told(tmp_path: Path) -> None:
    with running_sandbox(tmp_path, {"COUNTERSIGN_CLOCK_DATABASE_URL": "postgresql://127.0.0.1:1/x"}) as sandbox:
        told = sandbox.advance(5)
    assert told["product_clock_moved"] is False and told["note"].endswith(".")
    assert told["advanced_s"] == 5


def test_whole_days_pass_at_the_bank_too(tmp_path: Path) -> None:
    """The trial's second provider keeps a clock of its own; it goes with the others, by the days that it knows."""
    with running_bank(tmp_path) as bank, running_sandbox(tmp_path, {"BANK_URL": bank.url}) as sandbox:
        assert sandbox.advance(3600)["note"].endswith("only the sandbox's clock moved.")
        assert bank.told("GET", "/_mock/state")["clock"]["date"] == TODAY
        assert sandbox.advance(2.5 * 86_400)["note"].endswith("The bank's clock moved by 2 d.")
        assert bank.told("GET", "/_mock/state")["clock"]["date"] == "2099-01-08"
        bank.stop()
        assert "The bank's clock could not be moved" in sandbox.advance(86_400)["note"]


@pytest.mark.parametrize("asked", [{}, {"advance_s": -1}, {"advance_s": "5"}, {"advance_s": True}, {"advance_s": None},
                                   {"advance_s": 10**12}, {"advance_s": 1, "x": 1}], ids=str)
def test_a_clock_goes_forward_by_a_number_of_seconds(sandbox_of_file: SandboxProcess, asked: dict[str, object]) -> None:
    answer = sandbox_of_file.control("POST", "/clock", asked)
    assert answer.status_code == 422 and answer.json()["error"].endswith(".")


def test_the_management_command_serves_too(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "manage.py", "sandbox", "--db", str(tmp_path / "m.db")], cwd=ROOT, stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process.stdout:
        line = process.stdout.readline()
        process.terminate()
        assert process.wait(20) == 0
    assert '"control_url"' in line
