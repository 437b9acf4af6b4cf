"""Queries for the history on which trips are decided; callers hold the advisory lock for trips."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection
from django.db.models import Q, QuerySet

from controlplane.core.actors import label_of
from controlplane.core.outbox.escalation import Escalation
from switches.models import Episode, Ramp, Trip, TripPolicy
from switches.trips import decision

SUBJECT = "trip:"
"""Prefix of an escalation subject, followed by the trip's id."""
TRIPS_LOCK = 0x7219  # Key of the advisory lock, used nowhere else.
BY_HAND = (Episode.End.RELEASED, Episode.End.UNDONE)
PEOPLE = ("user", "slack")
"""Actor types of persons."""


@dataclass(frozen=True)
class TripContext:
    """The history on which a trip is decided, and the rows of the earlier trip and open episode."""

    history: decision.TripHistory
    earlier: Trip | None
    episode: Episode | None


def list_policies() -> list[TripPolicy]:
    """Return all trip policies in the order in which they are tried."""
    return list(TripPolicy.objects.order_by("position", "id"))


def deciding_policy(rows: Sequence[TripPolicy], source: str, scope: str) -> TripPolicy | None:
    found = decision.first_policy([to_policy_row(row) for row in rows], source, scope)
    return next((row for row in rows if found and row.trigger == found.trigger), None)


def to_policy_row(row: TripPolicy) -> decision.PolicyRow:
    return decision.PolicyRow(row.trigger, row.sources, row.scopes, row.gate, row.budget_per_hour)


def read_context(
    *, switch: str, fingerprint: str, policy: TripPolicy | None, now: datetime
) -> TripContext:
    """Return the history on which a request to engage a switch is decided.

    An alert that did not repeat for a day is marked as resolved.
    """
    same = Trip.objects.filter(switch=switch, fingerprint=fingerprint)
    earlier = (
        same.exclude(outcome=Trip.Outcome.DUPLICATE)
        .select_related("episode")
        .order_by("-id")
        .first()
    )
    if earlier is not None and now - earlier.last_at >= decision.RESOLVED_AFTER:
        same.filter(resolved_at__isnull=True).update(resolved_at=earlier.last_at)
        earlier.resolved_at = earlier.resolved_at or earlier.last_at
    episode = Episode.objects.filter(switch=switch, ended_at__isnull=True).first()
    tripped = Trip.objects.filter(outcome=Trip.Outcome.TRIPPED)
    latest = tripped.filter(switch=switch).order_by("-id").values_list("at", flat=True)
    spent = tripped.filter(policy=policy, at__gt=now - decision.BUDGET_WINDOW) if policy else None
    return TripContext(
        decision.TripHistory(
            earlier=_to_earlier_trip(earlier),
            open_episode=_open_episode(episode),
            release=_released_by_hand(switch, fingerprint),
            trips=list(latest[: decision.FLAP_TRIPS]),
            spent=spent.count() if spent is not None else 0,
        ),
        earlier,
        episode,
    )


def open_questions() -> QuerySet[Escalation]:
    return Escalation.objects.filter(subject__startswith=SUBJECT, closed_at__isnull=True)


def open_questions_about(row: Trip) -> QuerySet[Escalation]:
    return open_questions().filter(
        Q(subject=f"{SUBJECT}{row.pk}")
        | Q(facts__others__contains=[{"trip": row.pk}])
        | Q(facts__once=f"many:{row.by}", facts__more__gt=0)
    )


def firing_alerts(fingerprints: Iterable[str]) -> set[tuple[str, str]]:
    """Return the unresolved alerts with these fingerprints, as pairs of switch and fingerprint."""
    found = Trip.objects.filter(fingerprint__in=set(fingerprints), resolved_at__isnull=True)
    return set(found.values_list("switch", "fingerprint").distinct())


def _to_earlier_trip(row: Trip | None) -> decision.EarlierTrip | None:
    if row is None:
        return None
    open_still = row.episode is not None and row.episode.ended_at is None
    return decision.EarlierTrip(
        row.outcome,
        row.at,
        firing=row.resolved_at is None,
        episode_open=open_still,
        waits=row.outcome == Trip.Outcome.PERSON and open_questions_about(row).exists(),
    )


def _open_episode(episode: Episode | None) -> decision.OpenEpisode | None:
    if episode is None:
        return None
    ramping = episode.allow_percent > 0
    ramps = Ramp.objects.filter(episode=episode, live=True, automatic=False)
    by_hand = ramps.first() if ramping else None
    return decision.OpenEpisode(
        label_of(episode.engaged_by_type, episode.engaged_by_name),
        episode.engaged_at,
        episode.reason,
        ramping,
        ramped_by=label_of(by_hand.requested_by_type, by_hand.requested_by_name) if by_hand else "",
        by_machine=episode.engaged_by_type not in PEOPLE,
    )


def _released_by_hand(switch: str, fingerprint: str) -> decision.ReleaseByHand | None:
    """Return the latest release by a person of an episode that this fingerprint tripped."""
    row = (
        Trip.objects.filter(switch=switch, fingerprint=fingerprint, episode__ended_how__in=BY_HAND)
        .select_related("episode")
        .order_by("-episode__ended_at", "-id")
        .first()
    )
    if row is None or row.episode is None or row.episode.ended_at is None:
        return None
    return decision.ReleaseByHand(
        row.episode.ended_by, row.episode.ended_at, row.resolved_at is not None
    )


def lock_trips() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [TRIPS_LOCK])
