"""Before anything is installed: each reason to go no further is one sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from runtime_app.trial.places import PROJECT

BOOTSTRAP = PROJECT / "runtime_app" / "trial" / "bootstrap.py"


def refusal(*arguments: str, pretend: str = "pass") -> str:
    """What the bootstrap complains of, run as plain Python that finds none of our packages."""
    program = (
        f"import runpy, sys; {pretend}; sys.argv = ['bootstrap', *{list(arguments)!r}];"
        f"runpy.run_path({str(BOOTSTRAP)!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    return done.stderr.strip()


def test_an_old_python_is_told_which_one_is_needed(tmp_path: Path) -> None:
    sentence = refusal(str(tmp_path / "venv"), pretend="sys.version_info = (3, 9, 2)")
    assert sentence == "Countersign needs Python 3.11 or newer and this one is 3.9: name another with PYTHON=…"


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    requirements = tmp_path / "requirements.txt"
    requirements.touch()
    sentence = refusal(str(tmp_path / "file" / "venv"), str(requirements))
    assert "cannot be written" in sentence and str(tmp_path / "file" / "venv") in sentence


def test_a_python_without_venv_is_told_what_to_install(tmp_path: Path) -> None:
    requirements = tmp_path / "requirements.txt"
    requirements.touch()
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho 'ensurepip is not available' && exit 1\n")
    broken.chmod(0o755)
    sentence = refusal(str(tmp_path / "venv"), str(requirements), pretend=f"sys.executable = {str(broken)!r}")
    assert sentence.startswith("python3.") and "-venv)" in sentence


def test_a_package_that_cannot_be_had_is_one_sentence_and_is_tried_again(tmp_path: Path) -> None:
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("./not-there.whl\n")
    for _ in range(2):
        assert refusal(str(tmp_path / "venv"), str(requirements)).startswith("Installing failed: ERROR")


def test_make_without_any_python_says_what_is_needed(tmp_path: Path) -> None:
    (tmp_path / "sh").symlink_to("/bin/sh")
    done = subprocess.run(
        ["make", "--no-print-directory", "-C", str(PROJECT), "up"],
        env={"PATH": f"{tmp_path}"}, executable="/usr/bin/make", capture_output=True, text=True, timeout=60,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("Countersign needs Python 3.11 or newer, and this machine has none on the PATH")
