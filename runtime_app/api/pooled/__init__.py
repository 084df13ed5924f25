"""Django's PostgreSQL backend for a process that has a thread a request: connections from a pool, tested when taken."""
