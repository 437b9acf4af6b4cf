"""What happened before a wish, read under the lock of the machines."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet

from controlplane.core.actors import label_of
from controlplane.core.escalation.models import Escalation
from switches.models import Episode, Ramp, Trip, TripPolicy
from switches.trips import decide

SUBJECT = "trip:"
"""What the subject of an escalation about a trip begins with; its id follows."""
BY_HAND = (Episode.End.RELEASED, Episode.End.UNDONE)
PEOPLE = ("user", "slack")
"""Types of actors that are persons."""


@dataclass(frozen=True)
class Past:
    """The history that is decided on, with the rows behind it."""

    history: decide.History
    earlier: Trip | None
    episode: Episode | None


def policies() -> list[TripPolicy]:
    """The table in the order in which it is read."""
    return list(TripPolicy.objects.order_by("position", "id"))


def deciding(rows: Sequence[TripPolicy], source: str, scope: str) -> TripPolicy | None:
    """The row that decides on this source and scope, if any."""
    found = decide.first_policy([plain(row) for row in rows], source, scope)
    return next((row for row in rows if found and row.trigger == found.trigger), None)


def plain(row: TripPolicy) -> decide.Policy:
    """The row, as far as deciding goes."""
    return decide.Policy(row.trigger, row.sources, row.scopes, row.gate, row.budget_per_hour)


def past(*, switch: str, fingerprint: str, policy: TripPolicy | None, now: datetime) -> Past:
    """Everything that a decision on this wish depends on. What was not heard of for a day counts
    as resolved, and is marked so."""
    same = Trip.objects.filter(switch=switch, fingerprint=fingerprint)
    earlier = (
        same.exclude(outcome=Trip.Outcome.DUPLICATE)
        .select_related("episode")
        .order_by("-id")
        .first()
    )
    if earlier is not None and now - earlier.last_at >= decide.SILENCE:
        same.filter(resolved_at__isnull=True).update(resolved_at=earlier.last_at)
        earlier.resolved_at = earlier.resolved_at or earlier.last_at
    episode = Episode.objects.filter(switch=switch, ended_at__isnull=True).first()
    return Past(
        decide.History(
            earlier=_earlier(earlier),
            standing=_standing(episode),
            let_flow=_let_flow(switch, fingerprint),
            trips=_latest_trips(switch),
            spent=_spent(policy, now),
        ),
        earlier,
        episode,
    )


def waits_with(row: Trip) -> QuerySet[Escalation]:
    """The open questions that this trip is part of."""
    return Escalation.objects.filter(
        Q(subject=f"{SUBJECT}{row.pk}")
        | Q(facts__others__contains=[{"trip": row.pk}])
        | Q(facts__once=f"many:{row.by}", facts__more__gt=0),
        subject__startswith=SUBJECT,
        closed_at__isnull=True,
    )


def firing(fingerprints: Iterable[str]) -> set[tuple[str, str]]:
    """Switch and fingerprint of those of these alerts that are kept and not over."""
    found = Trip.objects.filter(fingerprint__in=set(fingerprints), resolved_at__isnull=True)
    return set(found.values_list("switch", "fingerprint").distinct())


def _earlier(row: Trip | None) -> decide.Earlier | None:
    if row is None:
        return None
    open_still = row.episode is not None and row.episode.ended_at is None
    return decide.Earlier(
        row.outcome,
        row.at,
        firing=row.resolved_at is None,
        episode_open=open_still,
        waits=row.outcome == Trip.Outcome.PERSON and waits_with(row).exists(),
    )


def _standing(episode: Episode | None) -> decide.Standing | None:
    if episode is None:
        return None
    by = label_of(episode.engaged_by_type, episode.engaged_by_name)
    ramping = episode.allow_percent > 0
    by_hand = (
        Ramp.objects.filter(episode=episode, live=True, automatic=False).first()
        if ramping
        else None
    )
    return decide.Standing(
        by,
        episode.engaged_at,
        episode.reason,
        ramping,
        ramped_by=label_of(by_hand.requested_by_type, by_hand.requested_by_name) if by_hand else "",
        by_machine=episode.engaged_by_type not in PEOPLE,
    )


def _let_flow(switch: str, fingerprint: str) -> decide.LetFlow | None:
    """The latest decision by hand against what this fingerprint had a part in."""
    row = (
        Trip.objects.filter(switch=switch, fingerprint=fingerprint, episode__ended_how__in=BY_HAND)
        .select_related("episode")
        .order_by("-episode__ended_at", "-id")
        .first()
    )
    if row is None or row.episode is None or row.episode.ended_at is None:
        return None
    return decide.LetFlow(row.episode.ended_by, row.episode.ended_at, row.resolved_at is not None)


def _latest_trips(switch: str) -> list[datetime]:
    stopped = Trip.objects.filter(switch=switch, outcome=Trip.Outcome.TRIPPED).order_by("-id")
    return list(stopped.values_list("at", flat=True)[: decide.FLAP_TRIPS])


def _spent(policy: TripPolicy | None, now: datetime) -> int:
    if policy is None:
        return 0
    since = now - decide.BUDGET_WINDOW
    return policy.trips.filter(outcome=Trip.Outcome.TRIPPED, at__gt=since).count()
