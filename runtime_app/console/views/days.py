from __future__ import annotations

from datetime import UTC, datetime, time
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runtime_app import access, accounts
from runtime_app.console import day_rows, keyset, moments, tenancy, uploads, words
from runtime_app.console.day_forms import CloseForm, UploadForm
from runtime_app.console.tags import money_words
from runtime_app.console.views.door import page
from runtime_app.errors import Conflict, Forbidden
from runtime_app.models import Account, StatementDay, Tenant
from runtime_app.statements import days as verbs
from runtime_app.statements import ingest
from runtime_app.statements.ingest import Taken
from runtime_app.statements.overviews import Overview

STATES = ("open", "closed")


@page("GET")
def days(request: HttpRequest) -> HttpResponse:
    """The tenant's statement days, newest first, by account and state."""
    tenant, person = tenancy.current(request), tenancy.person(request)
    if not access.may(person, tenant.id, "see_reconciliation"):
        raise Forbidden
    return _days_page(request, tenant)


def _days_page(request: HttpRequest, tenant: Tenant, bound: UploadForm | None = None) -> HttpResponse:
    person = tenancy.person(request)
    held = list(Account.objects.filter(tenant=tenant).order_by("ref"))
    ref = request.GET.get("account", "")
    ref = ref if ref in {account.ref for account in held} else ""
    state = request.GET.get("state", "")
    state = state if state in STATES else ""
    found: QuerySet[StatementDay] = verbs.listed(person).filter(tenant=tenant)
    narrowed = {"account__ref": ref} if ref else {}
    found = found.filter(**(narrowed | ({"state": state} if state else {})))
    # A day has no time of its own: at noon it is the same day everywhere.
    listed = keyset.page(found.order_by(), request.GET.get("cursor", ""), by="day", at=_noon)
    files = _bring(tenant) if access.may(person, tenant.id, "work_reconciliation") else []
    context = {
        "rows": day_rows.listed(listed.rows), "first": listed.first, "first_url": _url(ref, state),
        "older": listed.older and _url(ref, state, listed.older), "all_url": _url("", ""), "narrows": ref or state,
        "chips": [{"url": _url(ref, each), "label": label, "current": each == state}
                  for each, label in (("", _("All")), ("open", _("Open")), ("closed", _("Closed")))],
        "accounts": [{"url": _url(each, state), "label": each or _("All accounts"), "current": each == ref}
                     for each in ("", *(account.ref for account in held))] if len(held) > 1 else [],
        "upload": bound or (UploadForm(accounts=files) if files else None),
    }
    response = render(request, "console/days.html", context)
    response.status_code = 422 if bound is not None else 200
    return response


def _noon(row: StatementDay) -> datetime:
    return datetime.combine(row.day, time(12), UTC)


def _url(account: str, state: str, cursor: str = "") -> str:
    said = {name: value for name, value in (("account", account), ("state", state), ("cursor", cursor)) if value}
    return reverse("days") + (f"?{urlencode(said)}" if said else "")


def _bring(tenant: Tenant) -> list[Account]:
    """The accounts whose statements come as files."""
    promises = accounts.promises(tenant.id)
    refs = [ref for ref, promise in promises.items() if promise.statement == "camt.053"]
    return list(Account.objects.filter(tenant=tenant, ref__in=refs, closed_at__isnull=True).order_by("ref"))


@page("GET")
def day(request: HttpRequest, id: UUID) -> HttpResponse:
    """One day of one account: its totals, what does not match, and what closing it would say."""
    return _day_page(request, verbs.one(tenancy.person(request), id))


def _day_page(request: HttpRequest, row: StatementDay, bound: UploadForm | None = None) -> HttpResponse:
    person = tenancy.person(request)
    tenancy.show(request, row.tenant)
    seen = verbs.overview(row.account, row.day)
    works = access.may(person, row.tenant_id, "work_reconciliation")
    files = [a for a in _bring(row.tenant) if a.pk == row.account_id] if works and row.state == "open" else []
    context: dict[str, Any] = {
        "day": row, "seen": seen, "works": works, "closing": _closing(seen),
        "heading": _("%(day)s of %(account)s") % {"day": moments.as_date(row.day), "account": row.account.ref},
        "classes": [{"look": words.line(name), "number": number} for name, number in seen.classes],
        "upload": bound or (UploadForm(accounts=files, one=True) if files else None),
        "form": CloseForm(initial={"seen_sha256": seen.sha256}) if works and not seen.stops else None,
        "kept": row.totals if row.state == "closed" else {},
    }
    response = render(request, "console/day.html", context)
    response.status_code = 422 if bound is not None else 200
    return response


def _closing(seen: Overview) -> list[str]:
    """What closing says, in sentences."""
    said = [ngettext("%(n)s line is compared.", "%(n)s lines are compared.", seen.lines_count) % {
        "n": seen.lines_count}]
    for total in seen.totals:
        said.append(_("Ours %(ours)s, theirs %(theirs)s, a difference of %(difference)s.") % {
            "ours": money_words(total.ours_minor, total.currency),
            "theirs": money_words(total.theirs_minor, total.currency),
            "difference": money_words(total.difference_minor, total.currency)})
    if seen.cases:
        said.append(ngettext("%(n)s case is named and stays open.", "%(n)s cases are named and stay open.",
                             len(seen.cases)) % {"n": len(seen.cases)})
    return said


@page("POST")
def days_upload(request: HttpRequest) -> HttpResponse:
    """A file of any of the tenant's accounts."""
    tenant, person = tenancy.current(request), tenancy.person(request)
    if not access.may(person, tenant.id, "work_reconciliation"):
        raise Forbidden
    form = UploadForm(request.POST, request.FILES, accounts=_bring(tenant))
    taken = _take(request, form)
    return _days_page(request, tenant, form) if taken is None else _taken(request, taken)


@page("POST")
def day_upload(request: HttpRequest, id: UUID) -> HttpResponse:
    """A file of this very day."""
    row = verbs.one(tenancy.person(request), id, do="work_reconciliation")
    form = UploadForm(request.POST, request.FILES, accounts=[row.account], one=True)
    taken = _take(request, form, row)
    return _day_page(request, row, form) if taken is None else _taken(request, taken)


def _take(request: HttpRequest, form: UploadForm, row: StatementDay | None = None) -> Taken | None:
    """What came of the file; None when it was refused, with the reason put on the form."""
    if uploads.too_large(request):
        form.errors.clear()
        form.add_error("file", _("The file is larger than 20 MB; nothing of it was taken."))
        return None
    if not form.is_valid():
        return None
    file: UploadedFile[Any] = form.cleaned_data["file"]
    day = row.day if row else None
    taken = ingest.upload(tenancy.person(request), form.cleaned_data["account"], file.read(), day=day)
    if taken.refused or taken.day is None:
        form.add_error("file", taken.refused)
        return None
    return taken


def _taken(request: HttpRequest, taken: Taken) -> HttpResponse:
    assert taken.day is not None  # what has no day was refused
    if not taken.fresh:
        messages.info(request, _("This file was taken before; nothing was added."))
    else:
        messages.success(request, ngettext(
            "Taken: %(n)s line, %(new)s of it new.", "Taken: %(n)s lines, %(new)s of them new.", taken.lines_told
        ) % {"n": taken.lines_told, "new": taken.lines_new})
    return redirect("day", taken.day.pk)


@page("POST")
def day_close(request: HttpRequest, id: UUID) -> HttpResponse:
    """Close the day for good, exactly as it was read."""
    person = tenancy.person(request)
    row = verbs.one(person, id, do="work_reconciliation")
    tenancy.show(request, row.tenant)
    form = CloseForm(request.POST)
    try:
        if not form.is_valid():
            raise Conflict(_("This form is not complete; nothing was recorded. Open the page again."))
        verbs.close(person, id, seen_sha256=form.cleaned_data["seen_sha256"])
    except Conflict as lost:
        context = {"day": row, "text": lost.message, "stops": lost.facts.get("stops", [])[1:]}
        return render(request, "console/day_conflict.html", context, status=409)
    messages.success(request, _("The day is closed. What comes later for it is stored beside it and opens its case."))
    return redirect("day", id)
