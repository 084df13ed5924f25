from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from runtime_app import access, account_changes, accounts, sealing
from runtime_app.console import tenancy
from runtime_app.console.account_forms import AccountForm, KeyForm, NewAccountForm, SecretForm, SeenForm
from runtime_app.console.forms import show_refusal
from runtime_app.console.views.door import page
from runtime_app.errors import Conflict, FieldErrors, NotFound
from runtime_app.models import Account, Tenant


def _tenant(request: HttpRequest, slug: str) -> Tenant:
    """The tenant, for its administrators only."""
    tenant = access.tenant(tenancy.person(request), slug, do="manage_tenant")
    tenancy.show(request, tenant)
    return tenant


def _one(tenant: Tenant, id: UUID) -> Account:
    found = Account.objects.filter(tenant=tenant, pk=id).first()
    if found is None:
        raise NotFound
    return found


def _actor(request: HttpRequest) -> str:
    return access.actor(tenancy.person(request))


@page("GET")
def accounts_list(request: HttpRequest, slug: str) -> HttpResponse:
    """The tenant's accounts at providers."""
    tenant = _tenant(request, slug)
    held = Account.objects.filter(tenant=tenant).order_by("closed_at", "-is_default", "ref")[:200]
    context = {"accounts": [_shown(account) for account in held], "providers": _providers(tenant)}
    return render(request, "console/accounts.html", context)


def _providers(tenant: Tenant) -> list[dict[str, str]]:
    url = reverse("account_new", args=[tenant.slug])
    return [{"name": name, "url": f"{url}?provider={name}"} for name in accounts.providers()]


def _shown(account: Account) -> dict[str, Any]:
    """An account without its secrets: only that they are there, and since when."""
    try:
        secrets = account_changes.secrets_kept(account)
    except sealing.Unsealable:
        secrets = None
    return {"row": account, "has_key": bool(account.api_key_sealed), "secrets": secrets}


@page("GET", "POST")
def account_new(request: HttpRequest, slug: str) -> HttpResponse:
    """A new account, at the provider that was chosen before."""
    tenant = _tenant(request, slug)
    given = request.POST if request.method == "POST" else request.GET
    provider = given.get("provider", "")
    if provider not in accounts.providers():
        return redirect("accounts", tenant.slug)
    if request.method != "POST":
        return _new_page(request, NewAccountForm(provider=provider))
    form = NewAccountForm(request.POST, provider=provider)
    if not form.is_valid():
        return _new_page(request, form)
    said = form.cleaned_data
    try:
        account = account_changes.create(
            tenant, said["ref"], provider, form.wanted(), actor=_actor(request), api_key=said["api_key"],
            notice_secret=said["notice_secret"],
        )
    except FieldErrors as refused:
        show_refusal(form, refused)
        return _new_page(request, form)
    messages.success(request, _("The account is there."))
    return redirect("account", tenant.slug, account.pk)


def _new_page(request: HttpRequest, form: NewAccountForm) -> HttpResponse:
    status = 422 if form.is_bound else 200
    return render(request, "console/account_new.html", {"form": form, "provider": form.provider}, status=status)


@page("GET", "POST")
def account(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    """One account: what it is, which secrets it has, and where its provider sends notices."""
    tenant = _tenant(request, slug)
    shown = _one(tenant, id)
    if request.method != "POST":
        return _account_page(request, tenant, shown)
    form = AccountForm(request.POST, provider=shown.provider, account=shown)

    def change() -> Account:
        return account_changes.change(
            tenant, id, form.wanted(), seen_sha256=form.cleaned_data["seen_sha256"], actor=_actor(request))

    return _done(request, tenant, shown, form, change, _("The account is changed."))


@page("POST")
def account_key(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    tenant = _tenant(request, slug)
    form = KeyForm(request.POST)

    def change() -> Account:
        said = form.cleaned_data
        return account_changes.set_key(
            tenant, id, said["api_key"], seen_sha256=said["seen_sha256"], actor=_actor(request))

    return _done(request, tenant, _one(tenant, id), form, change, _("The new API key is used from now on."))


@page("POST")
def account_secret(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    tenant = _tenant(request, slug)
    form = SecretForm(request.POST)

    def change() -> Account:
        said = form.cleaned_data
        return account_changes.add_notice_secret(
            tenant, id, said["notice_secret"], seen_sha256=said["seen_sha256"], actor=_actor(request))

    return _done(request, tenant, _one(tenant, id), form, change, _("The new notice secret is good from now on."))


@page("POST")
def account_drop(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    tenant = _tenant(request, slug)
    form = SeenForm(request.POST)

    def change() -> Account:
        return account_changes.drop_old_secret(
            tenant, id, seen_sha256=form.cleaned_data["seen_sha256"], actor=_actor(request))

    return _done(request, tenant, _one(tenant, id), form, change, _("Only the newest notice secret is good now."))


def _done(
    request: HttpRequest, tenant: Tenant, shown: Account, form: Form, change: Callable[[], Account], sentence: str
) -> HttpResponse:
    """Make the change, or show the page again with what stands against it, or say that somebody was first."""
    try:
        if form.is_valid():
            change()
            messages.success(request, sentence)
            return redirect("account", tenant.slug, shown.pk)
        if "seen_sha256" in form.errors:
            raise Conflict(_("This form is not complete; nothing was recorded. Open the page again."))
    except FieldErrors as refused:
        show_refusal(form, refused)
    except sealing.Unsealable:
        form.add_error(None, _("This account's secrets were sealed under a key that is gone. Set both anew."))
    except Conflict as lost:
        return render(request, "console/account_conflict.html", {"account": shown, "text": lost.message}, status=409)
    return _account_page(request, tenant, shown, form)


def _account_page(request: HttpRequest, tenant: Tenant, shown: Account, bound: Form | None = None) -> HttpResponse:
    seen = {"seen_sha256": account_changes.state_sha256(shown)}

    def form(kind: type[Form]) -> Form:
        return bound if type(bound) is kind else kind(initial=seen)

    context = {
        **_shown(shown), "account": shown, "tenant_slug": tenant.slug,
        "form": bound if isinstance(bound, AccountForm) else AccountForm(provider=shown.provider, account=shown),
        "key_form": form(KeyForm), "secret_form": form(SecretForm), "drop_form": form(SeenForm),
        "notice_url": request.build_absolute_uri(f"/hooks/{shown.provider}/{shown.pk}"),
        "promise": accounts.promises(tenant.pk).get(shown.ref),
    }
    response = render(request, "console/account.html", context)
    response.status_code = 422 if bound is not None else 200
    return response
