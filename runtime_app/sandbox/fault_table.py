"""Every fault by its number: what it does, on which requests, and what it takes. `GET /_sandbox` prints this table."""

from __future__ import annotations

from runtime_app.sandbox.fault_kinds import Fault
from runtime_app.sandbox.fault_table_requests import REQUESTS
from runtime_app.sandbox.fault_table_told import TOLD

FAULTS: dict[str, Fault] = {
    fault.code: fault for fault in sorted((*REQUESTS, *TOLD), key=lambda fault: int(fault.code[1:]))
}
