"""The threshold metric `switch_engaged`, on which users define alerts."""

from collections.abc import Collection, Iterator
from datetime import datetime

from controlplane.core.actors import SHELL, label_of
from controlplane.core.canonical import timestamp
from controlplane.core.threshold_metrics import (
    ABOVE,
    AT_LEAST,
    COUNT,
    THRESHOLD_METRICS,
    MetricQuery,
    MetricReading,
    ThresholdMetric,
)

from .episodes import changes
from .models import Episode, SwitchState, Trip

KNOWING = ("user", "slack", "token")
TO_DO = "Check whether its cause is over, then release or acknowledge it."


def read_engaged(query: MetricQuery, now: datetime) -> Iterator[MetricReading]:
    rows = Episode.objects.filter(ended_at__isnull=True).select_related("switch")
    tripped = set(
        Trip.objects.filter(outcome=Trip.Outcome.TRIPPED, episode__ended_at__isnull=True)
        .order_by()
        .values_list("episode_id", flat=True)
    )
    for episode in rows.order_by("switch_id"):
        scope, _, key = episode.switch_id.partition(":")
        state = "engaged"
        if episode.state == SwitchState.RAMPING:
            state = f"ramping, {float(episode.allow_percent):g} % allowed"
        yield MetricReading(
            subject=episode.switch_id,
            value=1,
            beyond=query.beyond(1),
            samples=1,
            summary=f"The switch {episode.switch_id} was engaged by {episode.engaged_by_name}",
            path=f"/switches/{scope}/{key}/",
            evidence={
                "engaged_by": label_of(episode.engaged_by_type, episode.engaged_by_name),
                "engaged_at": timestamp(episode.engaged_at),
                "reason": episode.reason,
                "allow_percent": float(episode.allow_percent),
                "stands": state,
            },
            acknowledged_by=_get_responsible(episode, by_trip=episode.pk in tripped),
            thread=changes.episode_subject(episode),
            facts={
                "owner": episode.switch.owner or None,
                "runbook": episode.switch.runbook_url or None,
                "to_do": TO_DO,
            },
        )


def list_overdue(now: datetime) -> Collection[str]:
    """Return the ids of overdue switches, which have their own items on the attention page."""
    rows = Episode.objects.filter(ended_at__isnull=True, overdue_at__isnull=False)
    return set(rows.values_list("switch_id", flat=True))


def _get_responsible(episode: Episode, *, by_trip: bool) -> str:
    """Return the person who engaged or acknowledged the switch, or an empty text.

    For an automatic engagement, only an acknowledgment counts.
    """
    is_shell = episode.engaged_by_type == "system" and episode.engaged_by_name.startswith(SHELL)
    if not by_trip and (is_shell or episode.engaged_by_type in KNOWING):
        return label_of(episode.engaged_by_type, episode.engaged_by_name)
    return episode.acknowledged_by


THRESHOLD_METRICS.register(
    ThresholdMetric(
        name="switch_engaged",
        title="Engaged switches",
        unit=COUNT,
        statistics=("now",),
        about="One for each switch that is engaged or ramping.",
        read=read_engaged,
        comparisons=(ABOVE, AT_LEAST),
        waiting=list_overdue,
        counted_elsewhere=True,
    )
)
