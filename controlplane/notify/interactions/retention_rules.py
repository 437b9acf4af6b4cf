"""Retention of answered button requests."""

from datetime import timedelta

from controlplane.core.retention import RETENTION_RULES, RetentionRule

ANSWERED_REQUESTS = RetentionRule(
    name="answered-requests",
    model="core.AnsweredRequest",
    period=timedelta(hours=1),
    where="at < %(before)s",
    since="at",
    tick="interactions.purge",
    why="So that a button's request is not replayed: far longer than its signature is valid.",
)

RETENTION_RULES.register(ANSWERED_REQUESTS)
