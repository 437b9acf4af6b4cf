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
    why="What the gates of a running step count; no step looks back further.",
)
VERDICTS = RetentionRule(
    name="gate-verdicts",
    model="core.ExternalVerdict",
    period=timedelta(days=30),
    since="received_at",
    bounds=(1, 400),
    tick="gates.purge",
    why="What outsiders said last of their gates; one that nobody renews is gone.",
)

RETENTION_RULES.register(EVENTS, VERDICTS)

keep_permanently("One row for each thing that is asked; it goes with it.", "core.Gate", "core.Hold")
