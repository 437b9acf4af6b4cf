"""Periodic tasks of notify."""

from datetime import datetime

from controlplane.core import retention, ticks
from controlplane.core.outbox.retention_rules import MESSAGES, PACES, THREADS

from .delivery import backlog, claims, delivery
from .escalation import engine as escalation
from .escalation.retention_rules import ESCALATIONS
from .interactions import services as interactions
from .targets import services as targets


@ticks.tick("outbox.sweep", seconds=1, queue="outbox", pending=lambda now: [claims.unsent(now)])
def sweep_outbox(now: datetime) -> int:
    return delivery.sweep(now)


@ticks.tick("outbox.backlog", seconds=60, queue="housekeeping")
def watch_backlog(now: datetime) -> int:
    return backlog.look(now)


@ticks.tick("outbox.purge", seconds=3600, queue="housekeeping")
def purge_outbox(now: datetime) -> int:
    """Delete old delivered messages, threads and rate-limiter states; failed messages stay."""
    return retention.purge([MESSAGES, THREADS, PACES], now)


@ticks.tick("escalation.purge", seconds=24 * 3600, queue="housekeeping")
def purge_escalations(now: datetime) -> int:
    return retention.purge([ESCALATIONS], now)


@ticks.tick(
    "escalation.advance", seconds=15, queue="outbox", pending=lambda now: [escalation.pending(now)]
)
def advance_escalations(now: datetime) -> int:
    """Notify the next step of unacknowledged escalations."""
    return escalation.advance(now)


@ticks.tick("interactions.purge", seconds=600, queue="housekeeping")
def purge_answered_requests(now: datetime) -> int:
    return interactions.forget_old(now)


@ticks.tick("targets.seal", seconds=3600, queue="housekeeping")
def seal_webhook_urls(now: datetime) -> int:
    return targets.seal_webhook_urls(now)
