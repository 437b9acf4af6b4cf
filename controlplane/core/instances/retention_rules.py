"""Retention of instances, acknowledgements and check counts."""

from datetime import timedelta
from functools import partial

from controlplane.core.instances.check_series import HOUR_SECONDS, MINUTE_SECONDS
from controlplane.core.retention import RETENTION_RULES, RetentionRule

ACKNOWLEDGEMENTS = RetentionRule(
    name="acknowledgements",
    model="core.Acknowledgement",
    period=timedelta(days=8),
    since="acknowledged_at",
    bounds=(8, 90),
    tick="instances.purge",
    why="Proof of effect, and its figures in the weekly report.",
)
INSTANCES = RetentionRule(
    name="instances",
    model="core.Instance",
    period=timedelta(hours=24),
    # Timestamps in `checks` have one format and sort as text.
    where="coalesce(greatest(heard_at, reported_at), '-infinity') < %(before)s"
    " AND NOT EXISTS (SELECT FROM jsonb_each(checks) AS entry"
    " WHERE entry.value ->> 'seen' >= %(before_text)s)",
    since="greatest(heard_at, reported_at)",
    bounds=(1, 30),
    tick="instances.purge",
    why="Instances that must apply changes; silent for a day, an instance no longer counts.",
)

_check_counts = partial(
    RetentionRule,
    model="core.CheckCount",
    since="to_timestamp(start)",
    order="seconds, start",
    tick="instances.purge",
)
_OLD_COUNTS = "seconds = {} AND start < extract(epoch FROM %(before)s::timestamptz)::bigint"
CHECK_MINUTES = _check_counts(
    name="check-minutes",
    period=timedelta(hours=48),
    where=_OLD_COUNTS.format(MINUTE_SECONDS),
    why="Allowed and blocked checks of each switch by the minute, for its plot.",
    exempt="Counts by the hour.",
)
CHECK_HOURS = _check_counts(
    name="check-hours",
    period=timedelta(days=90),
    where=_OLD_COUNTS.format(HOUR_SECONDS),
    bounds=(2, 400),
    why="Allowed and blocked checks of each switch by the hour, for its plot.",
    exempt="Counts by the minute.",
)
CHECK_COUNTS = (CHECK_MINUTES, CHECK_HOURS)

RETENTION_RULES.register(ACKNOWLEDGEMENTS, INSTANCES, *CHECK_COUNTS)
