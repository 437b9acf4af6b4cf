"""How a trip ends: its alert resolves, or somebody engages in its stead or dismisses it."""

from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.errors import Conflict, InvalidInput, NotFound
from controlplane.core.escalation import services as escalation
from controlplane.core.escalation.models import Escalation
from switches import publication, reasons
from switches.models import Episode, Trip
from switches.trips import history, telling

MOST_AT_ONCE = 500


def resolve(*, switch: str, fingerprint: str, actor: Actor, now: datetime) -> str:
    """Note that an alert is over, and say what that means. It releases nothing."""
    actor.require("switches:trip")
    with transaction.atomic():
        publication.lock()
        rows = Trip.objects.filter(
            switch=switch, fingerprint=fingerprint, resolved_at__isnull=True
        ).order_by("id")
        over = list(rows.select_related("episode"))
        if not over:
            return "The alert has resolved; nothing was known of it that is still on."
        rows.update(resolved_at=now)
        _end_of_refusals(over, now)
        acting = next((row for row in over if row.episode and row.episode.ended_at is None), None)
        if acting is not None:
            telling.announce_resolved(acting, now)
        audit.record(
            actor=actor,
            action="trip.resolved",
            target=switch,
            after={"fingerprint": fingerprint, "trips": [row.pk for row in over]},
            now=now,
        )
        if acting is None:
            return "The alert has resolved; it holds nothing engaged."
        return f"The alert has resolved; {switch} stays engaged until somebody releases it."


def dismiss(*, trip_id: int, reason: str, actor: Actor, now: datetime) -> Trip:
    """A person decides not to stop the switch. Raises :class:`Conflict` if nothing waits."""
    actor.require("switches:write")
    if problems := reasons.unreadable(reason, called="reason", advice="Say why it may go on."):
        raise InvalidInput({"reason": problems})
    with transaction.atomic():
        publication.lock()
        trip = Trip.objects.select_for_update().filter(pk=trip_id).first()
        if trip is None:
            raise NotFound("There is no such trip.")
        subject = f"{history.SUBJECT}{trip.pk}"
        if not Escalation.objects.filter(subject=subject, closed_at__isnull=True).exists():
            raise Conflict("This is settled already: it waits for nobody.")
        escalation.close(subject=subject, now=now)
        trip.why = f"{trip.why} Dismissed by {actor.label}: {reason.strip()}"
        trip.save(update_fields=["why"])
        audit.record(
            actor=actor,
            action="trip.dismissed",
            target=trip.switch,
            reason=reason.strip(),
            after={"trip": trip.pk, "source": trip.source, "fingerprint": trip.fingerprint},
            now=now,
        )
        return trip


def waiting() -> list[Trip]:
    """Trips that wait for a person, oldest first: told of, and not engaged since."""
    return list(_told_of(settled=False))


def settle_engaged(now: datetime) -> int:
    """Tell nobody further of what somebody has engaged meanwhile; returns how many ended so."""
    done = list(_told_of(settled=True))
    for trip in done:
        escalation.close(subject=f"{history.SUBJECT}{trip.pk}", now=now)
    return len(done)


def _told_of(*, settled: bool) -> QuerySet[Trip]:
    subjects = Escalation.objects.filter(
        subject__startswith=history.SUBJECT, closed_at__isnull=True
    ).values_list("subject", flat=True)[:MOST_AT_ONCE]
    engaged_since = Episode.objects.filter(
        Q(engaged_at__gte=OuterRef("at")) | Q(ended_at__isnull=True, allow_percent=0),
        switch=OuterRef("switch"),
    )
    ids = [int(subject.removeprefix(history.SUBJECT)) for subject in subjects]
    engaged = Exists(engaged_since)
    found = Trip.objects.filter(pk__in=ids).select_related("policy").order_by("id")
    return found.filter(engaged) if settled else found.filter(~engaged)


def _end_of_refusals(over: list[Trip], now: datetime) -> None:
    """What a machine was refused needs nobody once it is over; what was a person's from the
    beginning still does."""
    for row in over:
        if row.outcome == Trip.Outcome.REFUSED:
            escalation.close(subject=f"{history.SUBJECT}{row.pk}", now=now)
