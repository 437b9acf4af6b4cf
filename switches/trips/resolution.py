"""End of trips' escalations to people: by a resolved alert, a person's engage, or a dismissal."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from controlplane.core import authority, reasons
from controlplane.core.actions import Action
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.errors import Conflict, InvalidInput, NotFound
from controlplane.core.escalations import services as escalation
from controlplane.core.outbox.escalation import Escalation
from switches.models import Episode, Trip
from switches.services.undo import UNDO_WINDOW

from . import escalations, history, notifications, texts


def resolve_alert(*, switch: str, fingerprint: str, actor: Actor, now: datetime) -> str:
    """Record that an alert resolved, which releases nothing; return a sentence on the result."""
    actor.require("switches:trip")
    fingerprint = texts.clean_text(fingerprint)
    with transaction.atomic():
        history.lock_trips()
        authority.require(actor, Action.ENGAGE, switch)
        rows = Trip.objects.filter(
            switch=switch, fingerprint=fingerprint, resolved_at__isnull=True
        ).order_by("id")
        trips = list(rows.select_related("episode"))
        if not trips:
            return "Alert resolved. No open trip matches it."
        rows.update(resolved_at=now)
        _close_resolved_refusals(trips, now)
        acting = next((row for row in trips if row.episode and row.episode.ended_at is None), None)
        if acting is not None:
            notifications.announce_resolved(acting, now)
        audit.record(
            actor=actor,
            action="trip.resolved",
            target=switch,
            after={"fingerprint": fingerprint, "trips": [row.pk for row in trips]},
            now=now,
        )
        if acting is None:
            return "Alert resolved. It keeps no switch engaged."
        return f"Alert resolved. {switch} stays engaged until someone releases it."


def dismiss_trip(*, trip_id: int, reason: str, actor: Actor, now: datetime) -> Trip:
    """Close a trip's escalation without engaging; raise :class:`Conflict` if none is open."""
    actor.require("switches:write")
    if problems := reasons.find_text_problems(reason, called="reason", advice="Enter a reason."):
        raise InvalidInput({"reason": problems})
    with transaction.atomic():
        history.lock_trips()
        trip = Trip.objects.select_for_update().filter(pk=trip_id).first()
        if trip is None:
            raise NotFound("This trip doesn't exist.")
        authority.require(actor, Action.EXTEND, trip.switch)
        subject = f"{history.SUBJECT}{trip.pk}"
        question = Escalation.objects.filter(subject=subject, closed_at__isnull=True).first()
        if question is None:
            raise Conflict("This trip was already decided.")
        escalation.close(subject=subject, now=now)
        trip.why = (
            f"{question.facts.get('why', trip.why)} Dismissed by {actor.label}: {reason.strip()}"
        )
        trip.save(update_fields=["why"])
        audit.record(
            actor=actor,
            action="trip.dismissed",
            target=trip.switch,
            reason=reason.strip(),
            after={
                "trip": trip.pk,
                "source": trip.source,
                "fingerprint": trip.fingerprint,
                "trips": escalations.member_trips(question),
            },
            now=now,
        )
        return trip


def list_waiting(questions: Sequence[Escalation] | None = None) -> list[Trip]:
    """Return the first trip of each escalation that waits for a person, oldest first.

    `questions` are the open escalations, if the caller has read them. The `why` of a returned trip
    is the escalation's text, which covers all its trips.
    """
    if questions is None:
        questions = list(history.open_questions().order_by("id"))
    engaged = _engaged_since(questions, Q())
    found = [question for question in questions if not _is_settled(question, engaged)]
    reasons_by_trip = {
        escalations.first_trip(question): question.facts.get("why") for question in found
    }
    trips = Trip.objects.filter(pk__in=reasons_by_trip).select_related("policy").order_by("id")
    for trip in trips:
        trip.why = reasons_by_trip[trip.pk] or trip.why
    return list(trips)


def close_engaged(now: datetime) -> int:
    """Close each escalation for which people engaged the switches of all trips; return how many.

    An engage counts after 30 s, when it can no longer be undone.
    """
    with transaction.atomic():
        history.lock_trips()
        questions = list(history.open_questions().order_by("id"))
        stays = Q(engaged_at__lte=now - UNDO_WINDOW) | Q(ended_how=Episode.End.RELEASED)
        engaged = _engaged_since(questions, stays)
        done = [question for question in questions if _is_settled(question, engaged)]
        for question in done:
            escalation.close(subject=question.subject, now=now)
    return len(done)


def _engaged_since(questions: Iterable[Escalation], condition: Q) -> set[int]:
    """Return ids of trips whose switch a person engaged in an episode that meets `condition`."""
    trips = {pk for question in questions for pk in escalations.member_trips(question)}
    since = Episode.objects.filter(
        condition,
        Q(engaged_at__gte=OuterRef("at")) | Q(ended_at__isnull=True, allow_percent=0),
        Q(ended_at__isnull=True) | Q(ended_how=Episode.End.RELEASED),
        switch=OuterRef("switch"),
        engaged_by_type__in=history.PEOPLE,
    )
    return set(Trip.objects.filter(Exists(since), pk__in=trips).values_list("pk", flat=True))


def _is_settled(question: Escalation, engaged: set[int]) -> bool:
    return not escalations.is_incomplete(question) and engaged.issuperset(
        escalations.member_trips(question)
    )


def _close_resolved_refusals(resolved: list[Trip], now: datetime) -> None:
    """Close escalations that are only about refused trips, once all their alerts have resolved."""
    refused = [row for row in resolved if row.outcome == Trip.Outcome.REFUSED]
    questions = {
        question.pk: question for row in refused for question in history.open_questions_about(row)
    }
    for question in questions.values():
        about = Trip.objects.filter(pk__in=escalations.member_trips(question))
        goes_on = about.filter(~Q(outcome=Trip.Outcome.REFUSED) | Q(resolved_at__isnull=True))
        if not escalations.is_incomplete(question) and not goes_on.exists():
            escalation.close(subject=question.subject, now=now)
