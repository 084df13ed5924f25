"""Which refusals each kind of call may answer with, as the OpenAPI document declares them."""

from __future__ import annotations

from typing import Any

from runtime_app.api.schemas import Problem

READS: dict[Any, Any] = dict.fromkeys((401, 404, 422, 503), Problem)
WRITES: dict[Any, Any] = dict.fromkeys((400, 401, 403, 404, 409, 413, 415, 422, 503), Problem)
STREAMS: dict[Any, Any] = dict.fromkeys((401, 404, 410, 422, 503), Problem)
