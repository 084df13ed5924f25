"""`python -m tests.bench [NAME …]`: measure, print the ratios and write bench.json; `profile` shows where time goes."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.bench import figures, inbox, latency, profile, refunds, submits, three_steps
from tests.bench.figures import Figure
from tests.bench.rig import PROJECT, Rig, running_rig

MEASUREMENTS: dict[str, Callable[[Rig, Callable[[str], None]], list[Figure]]] = {
    "w1": three_steps.measure,
    "submit": submits.measure,
    "latency": latency.measure,
    "refund": refunds.measure,
    "inbox": inbox.measure,
}


def say(line: str) -> None:
    print(line, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    groups = ", ".join(MEASUREMENTS)
    parser.add_argument("names", nargs="*", help=f"a figure or a group of them ({groups}; all by default), or profile")
    parser.add_argument("--output", type=Path, default=PROJECT / "bench.json")
    parser.add_argument("--peers", type=Path, default=PROJECT / ".venv-bench", help="the environment of the peers")
    wanted = parser.parse_args()
    if wanted.names == ["profile"]:
        profile.show(wanted.peers, say)
        return 0
    known = {name: group for name in wanted.names for group in MEASUREMENTS if f"{name}_".startswith(f"{group}_")}
    if unknown := set(wanted.names) - set(known):
        parser.error(f"there is no measurement {', '.join(sorted(unknown))}")
    measured: list[Figure] = []
    say(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before the start")
    with running_rig(wanted.peers) as rig:
        for name in [group for group in MEASUREMENTS if not known or group in known.values()]:
            began = time.monotonic()
            say(f"{name} …")
            measured += MEASUREMENTS[name](rig, say)
            say(f"  {time.monotonic() - began:.0f} s")
    say("")
    for figure in measured:
        say(str(figure))
    figures.write(measured, wanted.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
