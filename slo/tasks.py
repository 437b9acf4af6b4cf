"""Periodic tasks (ticks) of SLOs."""

from datetime import datetime

from controlplane.core import ticks
from controlplane.core.gates.services import find_open_gates
from slo import retention_rules
from slo.counters import compaction, retention
from slo.evaluation import gates, tick
from slo.ingest import client_reports, deferred_updates
from slo.ingest.prometheus import poller
from slo.models import DeferredUpdate, ReportedEvents, Slo
from slo.models.objective import PROMETHEUS
from slo.thresholds import evaluation

AT_ONCE = 5000
MAX_FOLDED = 100_000
MAX_PACKED = 500_000
MAX_PURGED = 1_000_000


@ticks.tick("slo.judge", seconds=5, queue="slo", pending=lambda now: [tick.pending_slos(now)])
def evaluate_slos(now: datetime) -> int:
    return tick.evaluate_due_minutes(now)


@ticks.tick("slo.gates", seconds=1, queue="slo", pending=lambda _now: [find_open_gates(gates.TYPE)])
def answer_gates(now: datetime) -> int:
    return gates.answer_open_gates(now)


@ticks.tick(evaluation.TICK, seconds=10, queue="slo")
def evaluate_thresholds(now: datetime) -> int:
    return evaluation.evaluate_rules(now)


@ticks.tick(
    "slo.poll",
    seconds=poller.POLL_SECONDS,
    queue="housekeeping",
    pending=lambda _now: [Slo.objects.present().filter(source__type=PROMETHEUS)],
)
def poll_prometheus(now: datetime) -> int:
    """Poll Prometheus servers. Has its own Celery queue, so that evaluation never waits for it."""
    return poller.poll_due(now)


@ticks.tick(
    "slo.fold",
    seconds=1,
    queue="slo",
    pending=lambda _now: [ReportedEvents.objects.all(), DeferredUpdate.objects.all()],
)
def add_reported(now: datetime) -> int:
    """Add events reported by clients, and deferred updates, to the minute counters."""
    return client_reports.add_reported(now, most=MAX_FOLDED) + deferred_updates.apply_deferred(
        most=MAX_FOLDED
    )


@ticks.tick("slo.presence", seconds=30, queue="slo")
def record_presence(now: datetime) -> int:
    return client_reports.record_presence(now)


@ticks.tick("slo.pack", seconds=300, queue="housekeeping")
def compact_minutes(now: datetime) -> int:
    return compaction.compact_minutes(now, most=MAX_PACKED)


@ticks.tick("slo.samples", seconds=60, queue="housekeeping")
def purge_samples(now: datetime) -> int:
    return retention.purge_samples(now, at_once=AT_ONCE, most=MAX_PURGED)


@ticks.tick("slo.purge", seconds=3600, queue="housekeeping")
def purge_counters(now: datetime) -> int:
    forgotten = retention.purge_old(now, at_once=AT_ONCE, most=MAX_PURGED)
    forgotten += retention.purge_removed(now, most=MAX_PURGED)
    return forgotten + retention_rules.purge_rows(now, at_once=AT_ONCE, most=MAX_PURGED)
