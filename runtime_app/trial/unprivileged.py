"""PostgreSQL refuses to run as root, so root lends it another user and places that this user can reach."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from runtime_app.trial.failure import TrialFailure

CANDIDATES = ("nobody", "daemon", "postgres")
OPEN_PLACES = (Path("/var/lib/countersign"), Path("/var/tmp/countersign"))


@dataclass(frozen=True, slots=True)
class Account:
    """An operating-system user without rights."""

    name: str
    uid: int
    gid: int

    def can_enter(self, folder: Path) -> bool:
        return self.can_run(["/bin/sh", "-c", 'cd "$1"', "sh", str(folder)])

    def can_run(self, command: Sequence[str]) -> bool:
        """Whether the command ends well as this user; its output is not shown."""
        try:
            done = subprocess.run(
                command, user=self.uid, group=self.gid, extra_groups=[], cwd="/", capture_output=True, timeout=60
            )
        except (OSError, subprocess.SubprocessError):
            return False
        return done.returncode == 0

    def own(self, folder: Path) -> None:
        """Make `folder` a private folder of this user."""
        folder.mkdir(exist_ok=True)
        os.chown(folder, self.uid, self.gid)
        folder.chmod(0o700)


def owner(folder: Path) -> Account | None:
    """Who owns `folder`; None when that is root or nobody whom this machine knows."""
    found = folder.stat()
    try:
        name = pwd.getpwuid(found.st_uid).pw_name
    except KeyError:
        return None
    return Account(name, found.st_uid, found.st_gid) if found.st_uid else None


def lent_account() -> Account | None:
    """Whom PostgreSQL runs as; None when we are not root and so run it ourselves."""
    if os.geteuid() != 0:
        return None
    for name in CANDIDATES:
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(name, found.pw_uid, found.pw_gid)
    raise TrialFailure(
        "PostgreSQL refuses to run as root and this machine has no user `nobody`: start the trial as an ordinary user."
    )


def open_place() -> Path:
    """A folder of root's that every user may enter, for when the project lies in a home that is closed to others."""
    for place in OPEN_PLACES:
        try:
            place.mkdir(mode=0o755, parents=True, exist_ok=True)
            place.chmod(0o755)
        except OSError:
            continue
        if place.stat().st_uid == 0 and not place.is_symlink():
            return place
    raise TrialFailure(
        "PostgreSQL cannot run as root, and its files found no place outside this closed folder: "
        "start the trial as an ordinary user, or set VAR to a folder that other users may enter."
    )


def reachable_copy(account: Account, package: Path, name: str) -> Path:
    """`package` and its neighbouring libraries, copied once to where `account` can run them."""
    target = open_place() / name
    if not target.exists():
        unfinished = Path(tempfile.mkdtemp(prefix=f"{name}.", dir=target.parent))
        unfinished.chmod(0o755)
        for part in (package, package.with_name(package.name + ".libs")):
            if part.exists():
                shutil.copytree(part, unfinished / part.name, symlinks=True)
        subprocess.run(["chmod", "-R", "a+rX", str(unfinished)], check=True)
        try:
            unfinished.rename(target)
        except OSError:  # another start was quicker
            shutil.rmtree(unfinished, ignore_errors=True)
    return target / package.name
