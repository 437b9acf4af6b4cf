"""Forgetting instances that are gone and acknowledgements that are old."""

from datetime import datetime, timedelta

from controlplane.core import retention

ACKNOWLEDGEMENTS = retention.rule(
    retention.Rule(
        name="acknowledgements",
        model="core.Acknowledgement",
        kept=timedelta(days=8),
        where="acknowledged_at < %(before)s",
        since="acknowledged_at",
        bounds=(8, 90),
        tick="instances.purge",
        why="Proof of effect, and the weekly report's figures of it.",
    )
)
INSTANCES = retention.rule(
    retention.Rule(
        name="instances",
        model="core.Instance",
        kept=timedelta(hours=24),
        # Moments as entries hold them sort as text.
        where="coalesce(greatest(heard_at, reported_at), '-infinity') < %(before)s"
        " AND NOT EXISTS (SELECT FROM jsonb_each(checks) AS entry"
        " WHERE entry.value ->> 'seen' >= %(before_text)s)",
        since="greatest(heard_at, reported_at)",
        bounds=(1, 30),
        tick="instances.purge",
        why="Who would have to apply a change; nobody who is silent for a day counts.",
    )
)


def forget(now: datetime, *, most: int) -> int:
    """Delete at most `most` instances that neither polled, reported nor asked for 24 h, and as many
    acknowledgements older than 8 days; returns how many."""
    return retention.purge([INSTANCES, ACKNOWLEDGEMENTS], now, at_once=most, most=most)
