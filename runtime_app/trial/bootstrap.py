"""Makes the virtual environment, with progress, and only when the requirements changed.

It is run by whatever Python the machine has, before anything is installed: standard library only, and written so
that an old Python gets as far as the sentence that says it is too old.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys

OLDEST = (3, 11)


def fail(sentence: str) -> int:
    sys.stderr.write(sentence + "\n")
    return 1


def say(text: str, end: str = "\n") -> None:
    sys.stdout.write(text + end)
    sys.stdout.flush()


def requirements_digest(files: list[str]) -> str:
    digest = hashlib.sha256(sys.version.encode())
    pending = list(files)
    while pending:
        name = pending.pop()
        with open(name, encoding="utf-8") as lines:
            text = lines.read()
        digest.update(text.encode())
        included = [line.split(None, 1)[1].strip() for line in text.splitlines() if line.startswith("-r ")]
        pending += [os.path.join(os.path.dirname(name), part) for part in included]
    return digest.hexdigest()


def make_environment(folder: str) -> str | None:
    """Make the environment unless it works; a sentence when that fails."""
    python = os.path.join(folder, "bin", "python")
    if os.path.exists(python) and subprocess.call([python, "-c", "import pip"], stderr=subprocess.DEVNULL) == 0:
        return None
    say("Making " + folder + " …")
    shutil.rmtree(folder, ignore_errors=True)
    done = subprocess.run([sys.executable, "-m", "venv", folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode == 0:
        return None
    said = done.stdout.decode(errors="replace")
    if "ensurepip" in said:
        version = "python{}.{}".format(*sys.version_info[:2])
        return version + " has no venv module here: install it (on Debian: apt-get install " + version + "-venv)."
    return "The virtual environment could not be made: " + (said.strip().splitlines() or ["no reason given"])[-1]


def install(folder: str, files: list[str]) -> str | None:
    """Install the requirements, saying how far it is; a sentence when that fails."""
    named = [part for name in files for part in ("-r", name)]
    command = [os.path.join(folder, "bin", "python"), "-m", "pip", "install", "--disable-pip-version-check", *named]
    say("Installing " + " and ".join(files) + " (only when changed) …")
    seen, lines = 0, []
    pip = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert pip.stdout is not None
    for raw in pip.stdout:
        line = raw.decode(errors="replace").strip()
        lines.append(line)
        if line.startswith(("Collecting ", "Requirement already satisfied")):
            seen += 1
            if seen % 20 == 0:
                say(f"  {seen} packages found …")
        elif line.startswith("Installing collected packages"):
            say(f"  putting {line.count(',') + 1} packages in place …")
    if pip.wait() == 0:
        return None
    with open(os.path.join(folder, "install.log"), "w", encoding="utf-8") as log:
        log.write("\n".join(lines) + "\n")
    reasons = [line for line in lines if line.startswith("ERROR")] or lines or ["pip said nothing"]
    return "Installing failed: " + reasons[-1] + " (all of it: " + os.path.join(folder, "install.log") + ")"


def main() -> int:
    if sys.version_info < OLDEST:
        found = "{}.{}".format(*sys.version_info[:2])
        return fail("Countersign needs Python 3.11 or newer and this one is " + found + ": name another with PYTHON=…")
    folder, files = sys.argv[1], sys.argv[2:]
    wanted = requirements_digest(files)
    stamp = os.path.join(folder, "installed-" + "-".join(os.path.basename(name) for name in files))
    try:
        with open(stamp, encoding="utf-8") as known:
            if known.read() == wanted and os.path.exists(os.path.join(folder, "bin", "python")):
                return 0
    except OSError:
        pass  # never installed
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        return fail("This folder cannot be written (" + str(error) + "): copy the project to one that can.")
    with open(files[0], encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # `make up` and `make test` may be started at the same time
        failure = make_environment(folder) or install(folder, files)
        if failure:
            return fail(failure)
        with open(stamp, "w", encoding="utf-8") as known:
            known.write(wanted)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(fail("\nStopped before everything was installed; the next start goes on."))
