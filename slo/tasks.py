"""The ticks of SLOs."""

from datetime import datetime

from controlplane.core import ticks
from controlplane.core.gates.services import open_gates
from slo.counters import forgetting, gone, packing
from slo.ingest import delayed, reported
from slo.ingest.prometheus import polling
from slo.thresholds import forgetting as old_alerts
from slo.thresholds import looking

from .evaluation import gates, tick

AT_ONCE = 5000
MAX_FOLDED = 100_000
MAX_PACKED = 500_000
MAX_PURGED = 1_000_000


@ticks.tick("slo.judge", seconds=5, queue="slo", pending=lambda now: [tick.pending(now)])
def judge(now: datetime) -> int:
    """Every SLO, once a minute."""
    return tick.turn(now)


@ticks.tick("slo.gates", seconds=1, queue="slo", pending=lambda _now: [open_gates(gates.TYPE)])
def answer_gates(now: datetime) -> int:
    return gates.answer_open(now)


@ticks.tick(looking.TICK, seconds=10, queue="slo")
def look_at_thresholds(now: datetime) -> int:
    return looking.look(now)


@ticks.tick(
    "slo.poll",
    seconds=polling.EVERY_SECONDS,
    queue="housekeeping",
    pending=lambda _now: [polling.pending()],
)
def ask_prometheus(now: datetime) -> int:
    """It waits for servers that may hang: no place in a queue that others wait in."""
    return polling.turn(now)


@ticks.tick("slo.fold", seconds=1, queue="slo", pending=lambda _now: reported.pending())
def fold_in(now: datetime) -> int:
    """What services reported, and what was too much to be added when it came."""
    return reported.fold(now, most=MAX_FOLDED) + delayed.fold(most=MAX_FOLDED)


@ticks.tick("slo.presence", seconds=30, queue="slo")
def note_presence(now: datetime) -> int:
    return reported.note_presence(now)


@ticks.tick("slo.pack", seconds=300, queue="housekeeping")
def pack_minutes(now: datetime) -> int:
    return packing.pack(now, most=MAX_PACKED)


@ticks.tick("slo.samples", seconds=60, queue="housekeeping")
def purge_samples(now: datetime) -> int:
    return forgetting.purge_samples(now, at_once=AT_ONCE, most=MAX_PURGED)


@ticks.tick("slo.purge", seconds=3600, queue="housekeeping")
def purge_counters(now: datetime) -> int:
    forgotten = forgetting.purge(now, at_once=AT_ONCE, most=MAX_PURGED)
    forgotten += gone.purge(now, most=MAX_PURGED)
    return forgotten + old_alerts.purge(now, at_once=AT_ONCE, most=MAX_PURGED)
