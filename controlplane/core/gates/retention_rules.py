"""Retention rules of the gates' event counts and external verdicts."""

from datetime import timedelta

from controlplane.core.retention import RETENTION_RULES, RetentionRule, keep_permanently

EVENTS = RetentionRule(
    name="gate-events",
    model="core.EventCount",
    period=timedelta(days=2),
    since="ended_at",
    order="ended_at",
    tick="gates.purge",
    why="Counts for the gates of a running step; no step looks back further.",
)
VERDICTS = RetentionRule(
    name="gate-verdicts",
    model="core.ExternalVerdict",
    period=timedelta(days=30),
    since="received_at",
    bounds=(1, 400),
    tick="gates.purge",
    why="Last observation of each external gate, unless it is renewed.",
)

RETENTION_RULES.register(EVENTS, VERDICTS)

keep_permanently("One row per gate, removed with it.", "core.Gate", "core.Hold")
