"""How a person wants to be told of approvals, and in which zone the person reads times."""

from __future__ import annotations

from datetime import time

from django.db import transaction

from approvals.calendars import check_zone
from approvals.models import Preferences
from approvals.models.delivery import DIGESTS
from runtime_app.errors import FieldErrors
from runtime_app.models import User
from runtime_app.points import point


def of(person: User) -> Preferences:
    """The person's own, or what holds for people who chose nothing."""
    return Preferences.objects.filter(person=person).first() or Preferences(person=person)


def keep(
    person: User, *, mail: bool, digest: str, quiet_from: time | None, quiet_to: time | None, time_zone: str
) -> Preferences:
    """Keep them. `time_zone` empty: the browser's. Quiet hours may go over midnight. Raises FieldErrors."""
    errors: dict[str, str] = {}
    if digest not in DIGESTS:
        errors["digest"] = "Choose how soon you are told."
    if (quiet_from is None) != (quiet_to is None):
        errors["quiet_to" if quiet_to is None else "quiet_from"] = "Give both ends of the quiet hours, or neither."
    elif quiet_from is not None and quiet_from == quiet_to:
        errors["quiet_to"] = "Quiet hours must end at another time than they begin."
    if time_zone and not check_zone(time_zone):
        errors["time_zone"] = "There is no such time zone; use a name such as Europe/Berlin."
    if errors:
        raise FieldErrors(errors)
    wanted = {"mail": mail, "digest": digest, "quiet_from": quiet_from, "quiet_to": quiet_to}
    point("preferences.keep.begin")
    with transaction.atomic():
        User.objects.filter(pk=person.pk).update(time_zone=time_zone)
        kept, _ = Preferences.objects.update_or_create(person=person, defaults=wanted)
        point("preferences.keep.commit")
    point("preferences.keep.committed")
    person.time_zone = time_zone
    return kept
