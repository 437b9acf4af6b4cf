"""Periodic tasks (ticks) of notify."""

from datetime import datetime

from controlplane.core import retention, ticks
from controlplane.core.outbox.retention_rules import MESSAGES, PACES, THREADS

from .delivery import backlog, claims, sender
from .escalation import engine as escalation
from .retention_rules import ANSWERED_REQUESTS, ESCALATIONS
from .targets import services as targets

ticks.tick(
    "outbox.sweep", seconds=1, queue="outbox", pending=lambda now: [claims.unsent_messages(now)]
)(sender.start_sending)
ticks.tick("outbox.backlog", seconds=60, queue="housekeeping")(backlog.watch_backlog)
ticks.tick(
    "escalation.advance",
    seconds=15,
    queue="outbox",
    pending=lambda now: [escalation.due_escalations(now)],
)(escalation.notify_due)
ticks.tick("targets.seal", seconds=3600, queue="housekeeping")(targets.seal_webhook_urls)


@ticks.tick("outbox.purge", seconds=3600, queue="housekeeping")
def purge_outbox(now: datetime) -> int:
    """Delete old delivered messages, Slack threads and rate limits; failed messages stay."""
    return retention.purge([MESSAGES, THREADS, PACES], now)


@ticks.tick("escalation.purge", seconds=24 * 3600, queue="housekeeping")
def purge_escalations(now: datetime) -> int:
    return retention.purge([ESCALATIONS], now)


@ticks.tick("interactions.purge", seconds=600, queue="housekeeping")
def purge_answered_requests(now: datetime) -> int:
    return retention.purge([ANSWERED_REQUESTS], now)
