"""Periodic tasks (ticks) of notify."""

from functools import partial

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
purge_outbox = ticks.tick("outbox.purge", seconds=3600, queue="housekeeping")(
    partial(retention.purge, [MESSAGES, THREADS, PACES])
)
ticks.tick("escalation.purge", seconds=24 * 3600, queue="housekeeping")(
    partial(retention.purge, [ESCALATIONS])
)
purge_answered_requests = ticks.tick("interactions.purge", seconds=600, queue="housekeeping")(
    partial(retention.purge, [ANSWERED_REQUESTS])
)
