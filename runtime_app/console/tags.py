"""The template tags and filters of the console; a template built-in, so that money has one way onto a page."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Any

from babel.core import Locale, UnknownLocaleError
from babel.numbers import get_decimal_symbol, get_group_symbol
from django import template
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import get_language, to_locale
from django.utils.translation import gettext as _

from runtime_app.console import moments, words
from runtime_app.currencies import EXPONENTS
from runtime_app.money import decimal_text

register = template.Library()


@lru_cache(maxsize=32)
def _separators(language: str) -> tuple[str, str]:
    try:
        locale = Locale.parse(to_locale(language))
    except (UnknownLocaleError, ValueError):
        locale = Locale("en")
    return get_group_symbol(locale), get_decimal_symbol(locale)


def money_text(minor: int, currency: str) -> str:
    """The amount in major units, exact, with the reader's separators and the currency's own decimals."""
    if currency not in EXPONENTS:
        return str(minor)
    group, point = _separators(get_language() or "en")
    return decimal_text(minor, currency, group=group, point=point)


@register.simple_tag
def money(minor: int | None, currency: str | None, size: str = "") -> SafeString | str:
    """An amount with its ISO code; "—" when it has not been given, which is not the same as zero."""
    if minor is None or not currency:
        return "—"
    extra = f" money-{size}" if size else ""
    return format_html('<span class="money{}">{}<abbr>{}</abbr></span>', extra, money_text(minor, currency), currency)


@register.simple_tag
def money_words(minor: int | None, currency: str | None) -> str:
    """The same as plain text, for a button or a title."""
    return f"{money_text(minor, currency)} {currency}" if minor is not None and currency else "—"


@register.simple_tag
def icon(name: str) -> SafeString:
    """Decoration only: what it means is always said in words beside it."""
    return format_html('<svg aria-hidden="true"><use href="{}#{}"></use></svg>', static("console/icons.svg"), name)


def _state(look: words.Look, size: str) -> SafeString:
    extra = f" state-{size}" if size else ""
    return format_html('<span class="state state-{}{}">{}{}</span>', look.shape, extra, icon(look.shape), look.word)


@register.simple_tag
def status(value: str, size: str = "") -> SafeString:
    return _state(words.look(words.STATUS, value), size)


@register.simple_tag
def operation_state(value: str, size: str = "") -> SafeString:
    return _state(words.look(words.OPERATION, value), size)


@register.simple_tag
def approval_state(value: str, size: str = "") -> SafeString:
    return _state(words.look(words.APPROVAL, value), size)


@register.simple_tag
def policy_state(value: str, size: str = "") -> SafeString:
    return _state(words.look(words.POLICY, value), size)


@register.simple_tag
def decision_word(value: str) -> SafeString:
    return _state(words.look(words.DECISION, value), "")


@register.simple_tag
def delivery_state(value: str) -> SafeString:
    return _state(words.look(words.DELIVERY, value), "")


@register.filter
def delivery_word(value: str) -> str:
    return str(words.TOLD.get(value, value))


@register.filter
def note_word(value: str) -> str:
    return str(words.NOTE.get(value, value))


@register.simple_tag
def severity(value: str, size: str = "") -> SafeString:
    return _state(words.look(words.SEVERITY, value), size)


@register.simple_tag
def case_state(value: str, size: str = "") -> SafeString:
    return _state(words.look(words.CASE_STATE, value), size)


@register.simple_tag
def line_class(value: str) -> SafeString:
    return _state(words.line(value), "")


@register.filter
def case_name(value: str) -> str:
    """What a class of case is called; one that this release does not know is shown as it is."""
    return str(words.CASE.get(value, value))


@register.filter
def operation_name(value: str) -> str:
    return str(words.look(words.OPERATION, value).word)


@register.simple_tag
def parked(value: str | None) -> SafeString | str:
    if not value:
        return ""
    return format_html('<span class="tag">{}{}</span>', icon("pause"), words.PARKED.get(value, value))


@register.simple_tag
def attention(value: str | None) -> SafeString | str:
    """The mark that an end is not the whole story; its reason is on the task's page."""
    return format_html('<span class="tag tag-attention">{}{}</span>', icon("flag"), _("attention")) if value else ""


@register.filter
def asked_by(task: Any) -> str:
    """Who is behind a request: a person, else the application that asked on its own."""
    if task.requester_id:
        return str(task.requester.shown_name)
    return task.service_account.name if task.service_account_id else "—"


@register.filter
def actor_name(actor: str) -> str:
    """The short name in `person:<id>:<name>`; what has none is the system."""
    kind, _id, name = (*str(actor).split(":", 2), "", "")[:3]
    return printable(name) if kind in {"person", "service"} else _("The system")


@register.filter
def passed_on_by(task: Any) -> str:
    """The application through which a person asked, if one did."""
    return task.service_account.name if task.requester_id and task.service_account_id else ""


@register.filter
def printable(value: Any) -> str:
    """Text from outside with its invisible characters made visible, so that two references cannot only look alike."""
    text = str(value)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)


@register.filter
def printable_text(value: Any) -> str:
    """Prose with its line breaks kept and every invisible character made visible."""
    return "\n".join(printable(line) for line in str(value).split("\n"))


@register.filter
def short(value: Any) -> str:
    """Both ends of a long id: the head of a UUIDv7 is only its time."""
    text = printable(value)
    return text if len(text) <= 16 else f"{text[:4]}…{text[-6:]}"


@register.simple_tag
def ident(value: Any, full: bool = False) -> SafeString:
    """An id in monospace, short, complete on hover and for the copy button that the script adds."""
    if value in (None, ""):
        return SafeString("—")
    text = printable(value)
    shown = text if full else short(value)
    return format_html('<span class="ident" data-copy="{}"><code title="{}">{}</code></span>', value, text, shown)


@register.filter
def moment(value: datetime | None) -> SafeString | str:
    return moments.as_moment(value) if value else "—"


@register.filter
def time_of_day(value: datetime | None) -> SafeString | str:
    return moments.as_time(value) if value else "—"


@register.filter
def day(value: datetime) -> str:
    return moments.as_day(value)


@register.filter
def calendar_day(value: date | None) -> str:
    """A day as a statement has it; no zone moves it."""
    return moments.as_date(value) if value else "—"


@register.filter
def duration(value: timedelta | float | int | None) -> SafeString:
    return format_html('<span class="nowrap">{}</span>', moments.as_duration(value))
