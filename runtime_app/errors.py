"""What can be refused, as exceptions with a code, an HTTP status and a sentence that is safe to show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class RuntimeAppError(Exception):
    """Something was refused."""

    code = "error"
    status = 400
    permanent = True  # False: the same call may succeed later

    def __init__(self, message: str | None = None, **facts: Any) -> None:
        self.message = message or (type(self).__doc__ or "").strip()
        self.facts: Mapping[str, Any] = facts
        super().__init__(self.message)


class FieldErrors(RuntimeAppError):
    """Some fields cannot be accepted."""

    code = "invalid"
    status = 422

    def __init__(self, errors: Mapping[str, str], message: str | None = None) -> None:
        super().__init__(message)
        self.errors = dict(errors)


class NotFound(RuntimeAppError):
    """There is nothing here that you may see."""

    code = "not_found"
    status = 404


class Forbidden(RuntimeAppError):
    """You may see this, but not do that."""

    code = "forbidden"
    status = 403


class Conflict(RuntimeAppError):
    """It changed while you were looking; nothing was recorded."""

    code = "conflict"
    status = 409


class IdempotencyConflict(Conflict):
    """This key was used before for a request that means something else."""

    code = "idempotency_conflict"


class PasswordNeeded(RuntimeAppError):
    """For this amount, give your password once more; your decision was not recorded."""

    code = "password_needed"
    status = 403


class BalanceTooSmall(Conflict):
    """Less remains to be refunded than this asks for."""

    code = "balance_too_small"


class AlreadyDecided(Conflict):
    """Somebody decided this first; your decision was not recorded."""

    code = "already_decided"


class Expired(Conflict):
    """The time to decide is over; your decision was not recorded."""

    code = "expired"


class StaleFacts(Conflict):
    """What you saw is no longer what would be done; your decision was not recorded."""

    code = "stale_facts"


class Unavailable(RuntimeAppError):
    """Something this needs does not answer right now; try again in a moment."""

    code = "unavailable"
    status = 503
    permanent = False
