"""When a person last gave the password in this session, for amounts that ask for it once more.

The session keeps the moment by the database's clock, and never the password.
"""

from __future__ import annotations

import logging
from datetime import datetime

from django.contrib.auth import HASH_SESSION_KEY, authenticate, logout
from django.contrib.auth import views as auth
from django.contrib.auth.forms import AuthenticationForm
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from approvals import decisions
from runtime_app import rows
from runtime_app.console import tenancy
from runtime_app.errors import FieldErrors, Forbidden

log = logging.getLogger(__name__)
_AT, _WRONG = "password_at", "password_wrong"
_MOST_WRONG = 5  # in a row, and the session ends
_LONGEST = 4096


class SignIn(auth.LoginView):
    """Signing in is giving the password."""

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        answer = super().form_valid(form)
        _note(self.request)
        return answer


def _note(request: HttpRequest) -> None:
    request.session[_AT] = rows.now().isoformat()
    request.session.pop(_WRONG, None)


def given_at(request: HttpRequest) -> datetime | None:
    """When the password was given last in this session; None when it was not."""
    kept = request.session.get(_AT)
    return datetime.fromisoformat(kept) if kept else None


def is_fresh(request: HttpRequest) -> bool:
    return decisions.is_fresh(given_at(request))


def check(request: HttpRequest, password: str) -> None:
    """The person gives the password once more. FieldErrors naming `password` when it is wrong; after too many wrong
    ones in a row the session ends with Forbidden."""
    person = tenancy.person(request)
    fits = 0 < len(password) <= _LONGEST
    found = authenticate(request, username=person.username, password=password) if fits else None
    if found is not None:
        # Its hash may just have been made anew with what is current; the session goes on with it.
        request.session[HASH_SESSION_KEY] = found.get_session_auth_hash()
        _note(request)
        return
    wrong = int(request.session.get(_WRONG, 0)) + 1
    request.session[_WRONG] = wrong
    log.warning("security: wrong password at a decision, person %s, %s in a row", person.pk, wrong)
    if wrong >= _MOST_WRONG:
        logout(request)
        raise Forbidden(_("The password was wrong too often, so you were signed out. Nothing was recorded."))
    raise FieldErrors({"password": _("This is not your password; nothing was recorded.")})
