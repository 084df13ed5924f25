"""Mails: what is asked and a link to the page, which stands behind sign-in. No mail carries anything that decides."""

from __future__ import annotations

import logging
import smtplib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit
from uuid import UUID, uuid5
from zoneinfo import ZoneInfo

from django.conf import settings
from django.core.mail import EmailMessage
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from approvals.models import Delivery
from approvals.telling import audience, moments
from runtime_app.money import Money

log = logging.getLogger(__name__)
_DIGESTS = UUID("0b1c7d52-5d0f-5d1c-9a43-6c1f6f2b9f10")

HEADS: dict[str, str | Promise] = {
    "asked": gettext_lazy("To decide"),
    "reminder": gettext_lazy("Still to decide"),
    "escalated": gettext_lazy("To decide, since the deadline is near"),
    "handed_over": gettext_lazy("Handed over to you to decide"),
    "approved": gettext_lazy("Approved"),
    "rejected": gettext_lazy("Rejected"),
    "input_asked": gettext_lazy("A question to you about"),
    "superseded": gettext_lazy("No longer agreed, since what it rested on changed"),
    "expired": gettext_lazy("Nobody decided in time"),
    "cancelled": gettext_lazy("Cancelled before it was decided"),
}


@dataclass(frozen=True, slots=True)
class News:
    """One piece of news as the reader sees it."""

    head: str
    action: str
    deadline: str  # empty when there is nothing to decide
    url: str


def send(deliveries: Sequence[Delivery]) -> str | None:
    """One mail to the one person whom all of these are for; None when the mail server took it, else what went wrong."""
    message = compose(deliveries)
    try:
        message.send(fail_silently=False)
    except smtplib.SMTPResponseException as error:
        return f"The mail server answered {error.smtp_code}."
    except (smtplib.SMTPException, OSError, ValueError) as error:  # ValueError: an address that cannot be one
        log.warning("a mail cannot be sent: %s", type(error).__name__)
        return f"The mail could not be sent: {type(error).__name__}."
    return None


def compose(deliveries: Sequence[Delivery]) -> EmailMessage:
    person, tenant = deliveries[0].person, deliveries[0].tenant
    assert person is not None
    zone = moments.zone_of(person.time_zone, tenant.time_zone)
    news = [_news(delivery, zone) for delivery in deliveries]
    subject = f"{news[0].head}: {news[0].action}"
    if len(news) > 1:
        subject = ngettext("%(n)s message about approvals", "%(n)s messages about approvals", len(news)) % {
            "n": len(news)}
    body = render_to_string("mail/news.txt", {"news": news, "tenant": tenant.name}).strip() + "\n"
    return EmailMessage(
        _one_line(subject), body, to=[person.email],
        headers={
            "Message-ID": f"<{_id(deliveries)}@{urlsplit(settings.BASE_URL).hostname or 'countersign'}>",
            "Auto-Submitted": "auto-generated",
        },
    )


def _id(deliveries: Sequence[Delivery]) -> UUID:
    """The same for the same news, so that a mail program folds what comes twice."""
    if len(deliveries) == 1:
        return deliveries[0].id
    return uuid5(_DIGESTS, " ".join(sorted(str(delivery.id) for delivery in deliveries)))


def _news(delivery: Delivery, zone: str) -> News:
    asked = delivery.approval
    decides = delivery.what in audience.TO_DECIDE
    # Who asked may see the request, and seldom approvals.
    page = reverse("approval", args=[asked.id]) if decides else reverse("task", args=[asked.task_id])
    facts, names = asked.facts, {"amount": "", "order": _one_line(asked.task.order_ref)}
    names["amount"] = str(Money(facts["amount_minor"], facts["currency"]))
    head = HEADS[_verdict(delivery)]
    return News(
        str(head), _("refund of %(amount)s, order %(order)s") % names,
        _time(asked.deadline_at, zone) if decides else "", settings.BASE_URL + page,
    )


def _verdict(delivery: Delivery) -> str:
    """What is told, with a decision told as what it was."""
    if delivery.what != "decided":
        return delivery.what
    return "rejected" if delivery.approval.state == "rejected" else "approved"


def _time(moment: datetime, zone: str) -> str:
    """In the reader's zone, and in UTC."""
    local = date_format(moment.astimezone(ZoneInfo(zone)), "D j M Y, H:i")
    return f"{local} {zone} ({moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC)"


def _one_line(text: str) -> str:
    """Whatever an order's reference holds, a subject is one line of printable text."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:200]
