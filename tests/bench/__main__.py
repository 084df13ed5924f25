"""`python -m tests.bench [NAME …]`: measure, print the ratios and write bench.json; `profile` shows where time goes."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.bench import figures, latency, profile, refunds, submits, three_steps
from tests.bench.figures import Figure
from tests.bench.rig import PROJECT, Rig, running_rig

MEASUREMENTS: dict[str, Callable[[Rig, Callable[[str], None]], list[Figure]]] = {
    "w1": three_steps.measure,
    "submit": submits.measure,
    "latency": latency.measure,
    "refund": refunds.measure,
}


def say(line: str) -> None:
    print(line, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(MEASUREMENTS)} (all by default), or profile")
    parser.add_argument("--output", type=Path, default=PROJECT / "bench.json")
    parser.add_argument("--peers", type=Path, default=PROJECT / ".venv-bench", help="the environment of the peers")
    wanted = parser.parse_args()
    if unknown := set(wanted.names) - {*MEASUREMENTS, "profile"}:
        parser.error(f"there is no measurement {', '.join(sorted(unknown))}")
    if wanted.names == ["profile"]:
        profile.show(wanted.peers, say)
        return 0
    measured: list[Figure] = []
    with running_rig(wanted.peers) as rig:
        for name in wanted.names or MEASUREMENTS:
            began = time.monotonic()
            say(f"{name} …")
            measured += MEASUREMENTS[name](rig, say)
            say(f"  {time.monotonic() - began:.0f} s")
    say("")
    for figure in measured:
        say(str(figure))
    figures.write(measured, wanted.output)
    return 0 if all(figure.ok is not False for figure in measured) else 1


if __name__ == "__main__":
    sys.exit(main())
