from __future__ import annotations

import os
import subprocess
import sys

import psycopg
import pytest
import redis

from runtime_app.trial.cluster import Cluster


def test_what_was_committed_is_there_after_an_immediate_stop(own_cluster: Cluster) -> None:
    """M17: PostgreSQL is the truth, also after it crashed."""
    with psycopg.connect(own_cluster.database_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept (n int)")
        connection.execute("INSERT INTO kept VALUES (7)")
    own_cluster.postgres.restart("immediate")
    with psycopg.connect(own_cluster.database_url) as connection:
        assert connection.execute("SELECT n FROM kept").fetchall() == [(7,)]
    own_cluster.postgres.kill()
    own_cluster.postgres.start()
    with psycopg.connect(own_cluster.database_url) as connection:
        assert connection.execute("SELECT n FROM kept").fetchall() == [(7,)]


def test_a_killed_redis_comes_back_at_its_address_with_nothing_in_it(own_cluster: Cluster) -> None:
    """M17: all of Redis may be lost."""
    client = redis.Redis.from_url(own_cluster.redis_url)
    client.set("bell", "rung")
    own_cluster.redis.kill()
    with pytest.raises(redis.ConnectionError):
        redis.Redis.from_url(own_cluster.redis_url, retry=None).ping()
    own_cluster.redis.start()
    assert client.get("bell") is None
    client.close()


def test_only_this_user_can_reach_the_sockets(own_cluster: Cluster) -> None:
    assert own_cluster.postgres.sockets.stat().st_mode & 0o077 == 0
    assert own_cluster.redis.socket.parent.stat().st_mode & 0o077 == 0


def test_a_command_runs_beside_a_throwaway_cluster_and_keeps_its_exit_code() -> None:
    ask = "import os, psycopg; psycopg.connect(os.environ['DATABASE_URL']).close(); raise SystemExit(7)"
    command = [sys.executable, "-m", "runtime_app.trial.cluster", "--", sys.executable, "-c", ask]
    environment = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    assert subprocess.run(command, env=environment, timeout=120).returncode == 7
