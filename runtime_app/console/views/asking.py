from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from runtime_app import access, jobs, tasks
from runtime_app.console import forms, tenancy
from runtime_app.console.tags import money_words
from runtime_app.console.views.door import page
from runtime_app.errors import FieldErrors, Unavailable
from runtime_app.models import Tenant, User
from runtime_app.texts import check_nonce
from runtime_app.workflows.refund.order import CannotRefund, NotNow
from runtime_app.workflows.refund.preview import Preview, preview


@page("GET", "POST")
def task_new(request: HttpRequest) -> HttpResponse:
    """Ask for a refund in two steps: the order is read first, so that one asks with the balance in view."""
    tenant, person = tenancy.current(request), tenancy.person(request)
    access.tenant(person, tenant.slug, do="request_tasks")
    if request.method == "POST":
        return _ask(request, tenant, person)
    if "order_ref" not in request.GET:
        return render(request, "console/new.html", {"form": forms.OrderForm()})
    form = forms.OrderForm(request.GET)
    if form.is_valid():
        seen = _read(form, tenant, form.cleaned_data["order_ref"])
        if seen is not None:
            return _confirm(request, seen, _fresh(seen))
    return render(request, "console/new.html", {"form": form}, status=422)


def _read(form: Any, tenant: Tenant, order_ref: str) -> Preview | None:
    """The order as it is now; None when there is nothing to refund, with the reason put on the form."""
    answer = preview(jobs.ports().orders, tenant, order_ref)
    if isinstance(answer, NotNow):
        raise Unavailable(answer.cause)
    if isinstance(answer, CannotRefund):
        form.add_error("order_ref", answer.why)
        return None
    if not answer.payments:
        form.add_error("order_ref", _("This order has no payment that could be refunded."))
        return None
    return answer


def _fresh(seen: Preview) -> forms.RefundForm:
    return forms.RefundForm(initial={"order_ref": seen.order_ref, "nonce": forms.new_nonce(), "seen": _seen(seen)})


def _seen(order: Preview) -> str:
    """What the person looked at when deciding to ask; another value when the form comes back refuses it."""
    return " ".join(f"{p.payment_ref}={p.remaining_minor}-{p.requested_minor}" for p in order.payments)


def _ask(request: HttpRequest, tenant: Tenant, person: User) -> HttpResponse:
    order_form, form = forms.OrderForm(request.POST), forms.RefundForm(request.POST)
    if not order_form.is_valid():
        return render(request, "console/new.html", {"form": order_form}, status=422)
    complete = form.is_valid()
    key = f"form-{check_nonce(form.cleaned_data.get('nonce', ''))}"
    order = _read(order_form, tenant, order_form.cleaned_data["order_ref"])
    # Looked for behind the reading: a copy of this form that got there first is part of what was read.
    before = access.tasks(person).filter(tenant=tenant, request_key=key, requester=person).first()
    if before is not None:
        return redirect("task", before.id)
    if order is None:
        return render(request, "console/new.html", {"form": order_form}, status=422)
    if not complete:
        return _confirm(request, order, form, status=422)
    if form.cleaned_data["seen"] != _seen(order):
        again = forms.RefundForm({**request.POST.dict(), "seen": _seen(order), "nonce": forms.new_nonce()})
        return _confirm(request, order, again, status=409, changed=True)
    try:
        minor = _checked(form, order)
        created = tasks.create(person, tenant, _request(form, order, minor), request_key=key)
    except FieldErrors as refused:
        forms.show_refusal(form, refused)
        return _confirm(request, order, form, status=422)
    messages.success(request, _("Your request is recorded. This page follows it."))
    return redirect("task", created.task.id)


def _checked(form: forms.RefundForm, order: Preview) -> int:
    """The amount in minor units, within what the chosen payment leaves; FieldErrors otherwise."""
    chosen = next((p for p in order.payments if p.payment_ref == form.cleaned_data["payment_ref"]), None)
    if chosen is None:
        raise FieldErrors({"payment_ref": _("Choose one of the order's payments.")})
    minor = form.minor(order.currency)
    if minor > chosen.remaining_minor:
        left = money_words(chosen.remaining_minor, order.currency)
        raise FieldErrors({"amount": _("At most %(left)s can be refunded of this payment.") % {"left": left}})
    return minor


def _request(form: forms.RefundForm, order: Preview, minor: int) -> tasks.Request:
    return tasks.Request(
        workflow="refund", order_ref=order.order_ref, payment_ref=form.cleaned_data["payment_ref"], amount_minor=minor,
        currency=order.currency, reason=form.cleaned_data["reason"],
    )


def _confirm(
    request: HttpRequest, order: Preview, form: forms.RefundForm, *, status: int = 200, changed: bool = False
) -> HttpResponse:
    chosen = form["payment_ref"].value() or (order.payments[0].payment_ref if len(order.payments) == 1 else "")
    payments = [
        {
            "payment_ref": p.payment_ref, "refundable_minor": p.remaining_minor, "chosen": p.payment_ref == chosen,
            "captured": money_words(p.captured_minor, order.currency),
            "requested": p.requested_minor and money_words(p.requested_minor, order.currency),
        }
        for p in order.payments
    ]
    context = {"order": order, "form": form, "payments": payments, "changed": changed}
    return render(request, "console/new_confirm.html", context, status=status)
