"""`python -m runtime_app.sandbox`: the payment provider and order system of the trial, as a process of its own."""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import sys


def main(argv: list[str] | None = None) -> int:
    """Serve until told to stop; 1 with one sentence when it cannot start."""
    parser = argparse.ArgumentParser(prog="sandbox", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="provider and order system; 0 takes a free one")
    parser.add_argument("--control-port", type=int, default=0, help="/_sandbox alone, also reachable while F1 stands")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--db", required=True, help="the SQLite file of its ledger; made when missing")
    asked = parser.parse_args(argv)
    return run(asked.db, asked.host, asked.port, asked.control_port)


def run(db: str, host: str, port: int, control_port: int) -> int:
    from runtime_app.sandbox.server import serve  # after the arguments, so that --help is quick

    try:
        asyncio.run(serve(db, host, port, control_port))
    except OSError as error:
        where = f"{host}:{port} or {host}:{control_port}"
        print(f"The sandbox cannot listen on {where}: {error.strerror}.", file=sys.stderr)
        return 1
    except sqlite3.Error as error:
        print(f"The sandbox cannot use {db}: {error}.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
