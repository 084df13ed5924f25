from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from approvals import webhooks
from runtime_app import access
from runtime_app.console import tenancy
from runtime_app.console.forms import show_refusal
from runtime_app.console.views.door import page
from runtime_app.errors import FieldErrors, NotFound
from runtime_app.models import Tenant


class AddressForm(forms.Form):
    url = forms.CharField(
        label=gettext_lazy("Address"), max_length=1000, strip=True,
        help_text=gettext_lazy("It begins with https:// and leads to a receiver of yours."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "inputmode": "url"}),
    )


@page("GET", "POST")
def webhooks_page(request: HttpRequest, slug: str) -> HttpResponse:
    """The tenant's addresses that are told of approvals. A new one's secret is on the answer to its form, and on no
    other page."""
    tenant = _tenant(request, slug)
    form = AddressForm(request.POST if request.method == "POST" else None)
    if not form.is_valid():
        return _shown(request, tenant, form)
    try:
        endpoint, secret = webhooks.add_endpoint(tenancy.person(request), tenant, form.cleaned_data["url"])
    except FieldErrors as refused:
        show_refusal(form, refused)
        return _shown(request, tenant, form)
    return _shown(request, tenant, AddressForm(), added=endpoint, secret=secret)


@page("POST")
def webhook_drop(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    tenant, person = _tenant(request, slug), tenancy.person(request)
    if id not in {endpoint.id for endpoint in webhooks.of_tenant(person, tenant)}:
        raise NotFound
    webhooks.drop_endpoint(person, id)
    messages.success(request, _("Nothing is sent there any more."))
    return redirect("webhooks", tenant.slug)


def _tenant(request: HttpRequest, slug: str) -> Tenant:
    tenant = access.tenant(tenancy.person(request), slug, do="manage_tenant")
    tenancy.show(request, tenant)
    return tenant


def _shown(request: HttpRequest, tenant: Tenant, form: AddressForm, **added: Any) -> HttpResponse:
    held = webhooks.of_tenant(tenancy.person(request), tenant)
    context = {"endpoints": held, "form": form, "most": webhooks.MOST, **added}
    return render(request, "console/webhooks.html", context, status=422 if form.errors else 200)
