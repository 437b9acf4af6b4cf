"""What happened before a wish, read under the publication lock."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from controlplane.core.escalation.models import Escalation
from switches.models import Episode, Trip, TripPolicy
from switches.trips import decide

SUBJECT = "trip:"
"""What the subject of an escalation about a trip begins with; its id follows."""
BY_HAND = (Episode.End.RELEASED, Episode.End.UNDONE)
ESCALATED_ONCE_WITHIN = decide.BUDGET_WINDOW


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


def told_lately(once: str, now: datetime) -> bool:
    """Whether a person is being told of the same, or was within the hour."""
    told = Escalation.objects.filter(subject__startswith=SUBJECT, facts__once=once)
    since = now - ESCALATED_ONCE_WITHIN
    return told.filter(closed_at__isnull=True).exists() or told.filter(opened_at__gt=since).exists()


def _earlier(row: Trip | None) -> decide.Earlier | None:
    if row is None:
        return None
    open_still = row.episode is not None and row.episode.ended_at is None
    return decide.Earlier(row.outcome, row.at, row.resolved_at is None, open_still)


def _standing(episode: Episode | None) -> decide.Standing | None:
    if episode is None:
        return None
    by = f"{episode.engaged_by_type}:{episode.engaged_by_name}"
    ramping = episode.allow_percent > 0
    return decide.Standing(by, episode.engaged_at, episode.reason, ramping)


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
