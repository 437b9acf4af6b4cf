"""Retention of data planes and relays that are no longer heard."""

from datetime import timedelta

from controlplane.core.retention import RETENTION_RULES, RetentionRule

DATA_PLANES = RetentionRule(
    name="data-planes",
    model="core.DataPlane",
    period=timedelta(hours=24),
    since="heard_at",
    where="heard_at < %(before)s"
    " AND (counted_seq = 0 OR heard_at < %(before)s - interval '30 days')",
    bounds=(1, 30),
    tick="instances.purge",
    why="Last reports of data planes and relays, which the page Fleet lists.",
    exempt="Numbers of relays' batches, for another 30 days: none may be counted twice.",
)

RETENTION_RULES.register(DATA_PLANES)
