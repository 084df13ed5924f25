"""Statements: a day of an account as the provider tells it, held against our operations, and closed by a person.

The clock makes a row for each day that is over (`open_days`), a worker reads it from the provider (`work`) or somebody
brings a file (`ingest.upload`), every line is compared (`compare`), and a person closes the day (`days.close`).
"""

from runtime_app.statements import days, ingest
from runtime_app.statements.calendar import open_days
from runtime_app.statements.rounds import is_anything_due, work

__all__ = ["days", "ingest", "is_anything_due", "open_days", "work"]
