"""The threshold metric `fleet_lag_ms`, on which users define alerts."""

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta

from controlplane.core.canonical import timestamp
from controlplane.core.fleet import alarms, queries
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.threshold_metrics import (
    ABOVE,
    AT_LEAST,
    MILLISECONDS,
    THRESHOLD_METRICS,
    MetricQuery,
    MetricReading,
    ThresholdMetric,
)

PATH = "/fleet/"


def read_lag(query: MetricQuery, now: datetime) -> Iterator[MetricReading]:
    fleet = queries.load_fleet(now)
    for member in fleet.members:
        lag = member.measure_lag(now)
        if lag is None:
            continue
        lag_ms = round(lag / timedelta(milliseconds=1))
        yield MetricReading(
            subject=member.name,
            value=lag_ms,
            beyond=query.beyond(lag_ms),
            samples=1,
            summary=f"The {member.kind} {member.name} was last known to be current"
            f" {lag_ms:,} ms ago",
            path=PATH,
            evidence={
                "state": member.state,
                "version": member.version,
                "published_version": fleet.head.version,
                "heard_at": timestamp(member.heard_at),
            },
        )
    for name in set(query.standing) - {member.name for member in fleet.members}:
        yield MetricReading(
            *(name, None, None, 0, f"{name} is gone", PATH),
            ended=f"{name} stopped, or was not heard for a day.",
        )


def list_escalated(_now: datetime) -> Collection[str]:
    """Return the names with an open alarm, which is an item of its own on the attention page."""
    subjects = Escalation.objects.filter(closed_at=None, event=alarms.EVENT)
    return {one.removeprefix(alarms.PREFIX) for one in subjects.values_list("subject", flat=True)}


THRESHOLD_METRICS.register(
    ThresholdMetric(
        name="fleet_lag_ms",
        title="Lag of data planes and relays",
        unit=MILLISECONDS,
        statistics=("now",),
        about="Time since each one's snapshot was last known to be current; up to 10 seconds is"
        " normal.",
        read=read_lag,
        comparisons=(ABOVE, AT_LEAST),
        waiting=list_escalated,
    )
)
