"""Retention of instances and acknowledgements."""

from datetime import timedelta

from controlplane.core.retention import RETENTION_RULES, RetentionRule

ACKNOWLEDGEMENTS = RetentionRule(
    name="acknowledgements",
    model="core.Acknowledgement",
    period=timedelta(days=8),
    since="acknowledged_at",
    bounds=(8, 90),
    tick="instances.purge",
    why="Proof of effect, and the weekly report's figures of it.",
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
    why="Who would have to apply a change; nobody who is silent for a day counts.",
)

RETENTION_RULES.register(ACKNOWLEDGEMENTS, INSTANCES)
