"""Retention rules of outbox messages, threads and rate limiter states."""

from datetime import timedelta

from controlplane.core.retention import RETENTION_RULES, RetentionRule

DAY = timedelta(days=1)

MESSAGES = RetentionRule(
    name="messages",
    model="core.OutboxMessage",
    parts=("core.Attempt",),
    period=30 * DAY,
    where="finished_at < %(before)s AND "
    "(state IN ('sent', 'superseded') OR discarded_at IS NOT NULL)",
    since="finished_at",
    bounds=(8, 400),
    tick="outbox.purge",
    why="Sent messages and their recipients, including weekly reports.",
    exempt="Failed messages, until they are retried or discarded.",
)
# Later messages find their thread by subject. Open subjects get a message every week, within the
# retention of messages, so their thread is never deleted.
THREADS = RetentionRule(
    name="threads",
    model="core.Thread",
    period=400 * DAY,
    where="created_at < %(before)s AND NOT EXISTS (SELECT FROM core_outboxmessage m"
    " WHERE m.destination = it.destination AND m.subject = it.subject)",
    since="created_at",
    bounds=(90, 3650),
    tick="outbox.purge",
    why="Slack messages by subject, to update them in place.",
    exempt="Those with messages in the outbox.",
)
PACES = RetentionRule(
    name="paces",
    model="core.Pace",
    period=7 * DAY,
    since="greatest(paced_until, keep_away_until)",
    tick="outbox.purge",
    why="Rate limits of destinations; removed if unused for long.",
)

RETENTION_RULES.register(MESSAGES, THREADS, PACES)
