"""What may stand behind the question mark: known names, each once, with whole numbers in ASCII digits."""

from __future__ import annotations

import re
from typing import Annotated

from django.http import HttpRequest
from pydantic import BeforeValidator, Field

from runtime_app.api.bodies import safe
from runtime_app.errors import FieldErrors

PAGE_MOST = 200
_DIGITS = re.compile(r"[0-9]{1,19}", re.ASCII)


def _digits(value: object) -> object:
    # Pydantic would read " 5 ", "1_0", "5.0" and the digits of other scripts as numbers too.
    if isinstance(value, str) and not _DIGITS.fullmatch(value):
        raise ValueError("Use a whole number.")
    return value


Limit = Annotated[int, BeforeValidator(_digits), Field(ge=1, le=PAGE_MOST)]
AfterSeq = Annotated[
    int, BeforeValidator(_digits), Field(ge=0, lt=2**31, description="Only events with a greater `seq`.")
]
AfterFence = Annotated[
    int, BeforeValidator(_digits), Field(ge=0, lt=2**63, description="Only attempts with a greater `fence`.")
]


def only(request: HttpRequest, *names: str) -> None:
    """Refuse parameters this call does not have, or has twice: they would be ignored, and somebody relies on them."""
    errors = {safe(name): "There is no such parameter here." for name in request.GET if name not in names}
    errors |= {name: "Give this once." for name in names if len(request.GET.getlist(name)) > 1}
    if errors:
        raise FieldErrors(errors)
