"""Retention of data planes and relays that are no longer heard."""

from datetime import timedelta

from controlplane.core.retention import RETENTION_RULES, RetentionRule

DATA_PLANES = RetentionRule(
    name="data-planes",
    model="core.DataPlane",
    period=timedelta(hours=24),
    since="heard_at",
    bounds=(1, 30),
    tick="instances.purge",
    why="Data planes and relays; silent for a day, one no longer counts.",
)

RETENTION_RULES.register(DATA_PLANES)
