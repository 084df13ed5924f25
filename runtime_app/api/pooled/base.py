from __future__ import annotations

from typing import Any

import psycopg
from django.db.backends.postgresql import base
from psycopg_pool import ConnectionPool


class DatabaseWrapper(base.DatabaseWrapper):
    def get_new_connection(self, conn_params: dict[str, Any]) -> psycopg.Connection[Any]:
        """A connection that answers. When one does not, PostgreSQL was away, and all that lay beside it are replaced.

        The pool's own test throws away one at a time and waits longer after each, so that a restart of PostgreSQL
        would cost as many refused requests as there were idle connections.
        """
        taken: psycopg.Connection[Any] = super().get_new_connection(conn_params)
        try:
            ConnectionPool.check_connection(taken)
        except psycopg.OperationalError:
            self.pool.putconn(taken)
            self.pool.drain()
            taken = super().get_new_connection(conn_params)
        return taken
