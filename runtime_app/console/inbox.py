"""The approver's inbox: what a person wishes to see of it, and which approvals that is, a page at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import date, datetime, time, timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import QueryDict
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from approvals import decisions, reach
from approvals.models import OPEN, Approval, Decision, Snooze
from runtime_app import access
from runtime_app.console import keyset
from runtime_app.currencies import EXPONENTS
from runtime_app.errors import FieldErrors
from runtime_app.models import Tenant, User
from runtime_app.models.columns import RuntimeNow
from runtime_app.money import parse_decimal

DECIDE, MINE, SNOOZED, ALL_OPEN, DONE, CLOSED = SHOWS = ("decide", "mine", "snoozed", "open", "done", "decided")
OF_DECIDERS = (DECIDE, MINE, SNOOZED, DONE)
_MOST_TEXT = 200


@dataclass(frozen=True, slots=True)
class Wish:
    """The inbox's address, read. `show` empty is what the person begins with."""

    show: str = ""
    q: str = ""
    currency: str = ""
    least: str = ""
    most: str = ""
    requester: str = ""
    before: str = ""

    @classmethod
    def read(cls, said: QueryDict) -> Wish:
        words = {name: _text(said, name) for name in ("q", "currency", "least", "most", "requester", "before")}
        show = said.get("show", "")
        return cls(show=show if show in SHOWS else "", **words)

    @classmethod
    def kept(cls, query: str) -> Wish:
        """A query as an address carries it along; what is no wish counts as none."""
        return cls.read(QueryDict(query[:500].encode("ascii", "ignore").decode()))

    def query(self, **other: str) -> str:
        wish, plain = replace(self, **other), Wish()
        said = {f.name: getattr(wish, f.name) for f in fields(wish) if getattr(wish, f.name) != getattr(plain, f.name)}
        return urlencode(said, errors="replace")

    def url(self, cursor: str = "", **other: str) -> str:
        """The address of this wish with these values in place of its own."""
        query = "&".join(filter(None, (self.query(**other), urlencode({"cursor": cursor}) if cursor else "")))
        return reverse("approvals") + (f"?{query}" if query else "")

    @property
    def narrows(self) -> bool:
        return any((self.q, self.currency, self.least, self.most, self.requester, self.before))

    @property
    def carried(self) -> str:
        """What an address of one approval carries, so that the way back leads here."""
        return f"?{urlencode({'from': self.query()})}" if self.query() else ""


def _text(said: QueryDict, name: str) -> str:
    text = said.get(name, "").strip()[:_MOST_TEXT]
    return text if text.isprintable() else "\ufffd"


def narrowed(rows: QuerySet[Approval], wish: Wish, errors: dict[str, str]) -> QuerySet[Approval]:
    """Those of the rows that the filters let through. A filter that cannot be read is told in `errors` and not used."""
    if wish.q:
        rows = rows.filter(Q(task__order_ref__startswith=wish.q) | Q(task__payment_ref=wish.q))
    if wish.requester:
        named = Q(task__requester__username__iexact=wish.requester)
        for word in wish.requester.split()[:4]:
            rows = rows.filter(named | Q(task__requester__first_name__istartswith=word)
                               | Q(task__requester__last_name__istartswith=word))
    if wish.before and (end := _end_of(wish.before, errors)) is not None:
        rows = rows.filter(deadline_at__lt=end)
    if wish.currency and wish.currency not in EXPONENTS:
        errors["currency"] = _("There is no such currency.")
    elif wish.currency:
        rows = rows.filter(facts__currency=wish.currency)
    for name, lookup in (("least", "gte"), ("most", "lte")):
        if getattr(wish, name) and (minor := _minor(wish, name, errors)) is not None:
            rows = rows.filter(**{f"facts__amount_minor__{lookup}": minor})
    return rows


def _minor(wish: Wish, name: str, errors: dict[str, str]) -> int | None:
    if wish.currency not in EXPONENTS:
        errors[name] = _("Choose the currency too; an amount means nothing without it.")
        return None
    try:
        return parse_decimal(getattr(wish, name), wish.currency, name)
    except FieldErrors as refused:
        errors |= refused.errors
        return None


def _end_of(day: str, errors: dict[str, str]) -> datetime | None:
    """The end of this day on the reader's clock."""
    try:
        found = date.fromisoformat(day)
        if not 2000 <= found.year <= 9000:
            raise ValueError
    except ValueError:
        errors["before"] = _("Write the day as 2026-12-31.")
        return None
    return timezone.make_aware(datetime.combine(found + timedelta(days=1), time()))


@dataclass(frozen=True, slots=True)
class Listed:
    """One page. `held` are those in the person's own hand, which stand above the first page of Mine."""

    rows: list[Any]
    held: list[Any]
    older: str | None
    first: bool


def listed(person: User, tenant: Tenant, wish: Wish, cursor: str, errors: dict[str, str]) -> Listed:
    """The page of this wish behind the cursor. `wish.show` has been settled."""
    mine = decisions.approvals(person).filter(tenant=tenant)
    rows = narrowed(mine, wish, errors)
    if wish.show in (DECIDE, MINE):
        return _reached(person, tenant, wish, rows, cursor)
    waiting = wish.show in (SNOOZED, ALL_OPEN)
    if wish.show == SNOOZED:
        rows = rows.filter(Exists(_snoozed(person)))
    if wish.show == DONE:
        rows = rows.filter(Exists(Decision.objects.filter(approval=OuterRef("pk"), person=person, withdrawn_at=None)))
    rows = rows.filter(state=OPEN) if waiting else rows.exclude(state=OPEN).filter(closed_at__isnull=False)
    page = keyset.page(_shown(rows, person), cursor, by="deadline_at" if waiting else "closed_at",
                       newest_first=not waiting)
    return Listed(page.rows, [], page.older, page.first)


def _reached(
    person: User, tenant: Tenant, wish: Wish, rows: QuerySet[Approval], cursor: str
) -> Listed:
    after = keyset.read(cursor) if cursor else None
    held: list[Any] = []
    if wish.show == MINE and not cursor:
        held = list(_shown(in_hand(person, rows), person)[: keyset.SIZE])
    found = reach.find(person, tenant.id, _open_to(person, tenant, wish, rows), size=keyset.SIZE, after=after)
    by_id = {row.id: row for row in _shown(Approval.objects.filter(id__in=found.ids), person)}
    older = keyset.write(*found.behind) if found.behind is not None else None
    return Listed([by_id[id] for id in found.ids if id in by_id], held, older, first=not cursor)


def _open_to(person: User, tenant: Tenant, wish: Wish, rows: QuerySet[Approval]) -> QuerySet[Approval]:
    """In nobody's hand, and not put away by this person; in Mine those that ask the person by name or by team."""
    free = rows.filter(~Exists(_snoozed(person)), claimed_by__isnull=True)
    return free.filter(reach.named(person, tenant.id)) if wish.show == MINE else free


def in_hand(person: User, rows: QuerySet[Approval]) -> QuerySet[Approval]:
    return rows.filter(state=OPEN, claimed_by=person).order_by("deadline_at", "id")


def following(person: User, tenant: Tenant, wish: Wish) -> UUID | None:
    """The next approval that the person may decide, of those the wish lets through."""
    wish = replace(wish, show=wish.show if wish.show in (DECIDE, MINE) else DECIDE)
    rows = narrowed(decisions.approvals(person).filter(tenant=tenant), wish, {})
    if wish.show == MINE and (held := in_hand(person, rows).values_list("id", flat=True).first()) is not None:
        return held
    return next(iter(reach.find(person, tenant.id, _open_to(person, tenant, wish, rows), size=1).ids), None)


def _snoozed(person: User) -> QuerySet[Snooze]:
    return Snooze.objects.filter(approval=OuterRef("pk"), person=person, until__gt=RuntimeNow())


def _shown(rows: QuerySet[Approval], person: User) -> QuerySet[Approval]:
    """With what a row tells besides its own columns."""
    earlier = Approval.objects.filter(task=OuterRef("task"), state="superseded").exclude(pk=OuterRef("pk"))
    given = Decision.objects.filter(approval=OuterRef("pk"), withdrawn_at=None)
    agreed = given.filter(verdict="approve").order_by().values("approval").annotate(n=Count("pk")).values("n")
    return rows.select_related("task__requester", "task__service_account", "claimed_by").annotate(
        votes=Coalesce(Subquery(agreed), 0), changed=Exists(earlier), voted=Exists(given.filter(person=person)),
        put_away=Subquery(_snoozed(person).values("until")), ends=F("deadline_at"),
    )


@dataclass(frozen=True, slots=True)
class Row:
    """An approval as a row tells it. `left` is the time until its deadline."""

    approval: Any
    waited: timedelta
    left: timedelta
    yours: bool
    held: bool
    nobody: bool
    together: bool

    @property
    def task(self) -> Any:
        return self.approval.task

    @property
    def near(self) -> bool:
        return self.left <= timedelta(hours=24)


def told(person: User, tenant: Tenant, wish: Wish, approvals: Sequence[Any], now: datetime) -> list[Row]:
    """The rows, with a fixed number of questions for all of them."""
    waiting = [a.id for a in approvals if a.state == OPEN]
    seen = reach.seen_of(waiting)
    stuck = reach.nobody_could(tenant.id, list(seen.values()))
    chooses = wish.show in (DECIDE, MINE) and access.may(person, tenant.id, "decide_approvals")
    return [
        Row(
            approval=a, waited=(a.closed_at or now) - a.asked_at, left=a.deadline_at - now,
            yours=a.task.requester_id == person.pk, held=a.claimed_by_id == person.pk, nobody=a.id in stuck,
            together=chooses and (s := seen.get(a.id)) is not None and s.rules.in_bulk(s.amount_minor, s.currency),
        )
        for a in approvals
    ]
