"""Retention of escalations, answered button requests, targets and routes."""

from datetime import timedelta

from controlplane.core.retention import RETENTION_RULES, RetentionRule, keep_permanently

ESCALATIONS = RetentionRule(
    name="escalations",
    model="core.Escalation",
    period=timedelta(days=400),
    where="closed_at < %(before)s",
    since="opened_at",
    bounds=(90, 3650),
    tick="escalation.purge",
    why="Past escalations and acknowledgments, for postmortems.",
    exempt="Open items.",
)
ANSWERED_REQUESTS = RetentionRule(
    name="answered-requests",
    model="core.AnsweredRequest",
    period=timedelta(hours=1),
    since="at",
    tick="interactions.purge",
    why="Requests of Slack buttons, against replays; kept far longer than a signature is valid.",
)

RETENTION_RULES.register(ESCALATIONS, ANSWERED_REQUESTS)
keep_permanently(
    "Set and removed by people.",
    "core.Target",
    "core.TeamContact",
    "core.OnCallMember",
    "core.EscalationStep",
    "core.Route",
)
