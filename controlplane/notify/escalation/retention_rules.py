"""Retention of escalations."""

from datetime import timedelta

from controlplane.core.retention import RETENTION_RULES, RetentionRule

ESCALATIONS = RetentionRule(
    name="escalations",
    model="core.Escalation",
    period=timedelta(days=400),
    where="closed_at < %(before)s",
    since="opened_at",
    bounds=(90, 3650),
    tick="escalation.purge",
    why="Who was called and who acknowledged, for postmortems.",
    exempt="What is open.",
)

RETENTION_RULES.register(ESCALATIONS)
