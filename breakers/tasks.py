"""The ticks of breakers."""

from datetime import datetime

from breakers.outages import services as outages
from breakers.probes import services as probes
from controlplane.core import ticks
from controlplane.core.gates.services import find_open_gates

from . import degradation_causes, gates
from .services import discovered, overrides
from .states import minutes, retention_rules, stale_instances

AT_ONCE = 5000
MAX_PURGED = 1_000_000


@ticks.tick(
    "breakers.gates",
    seconds=1,
    queue="breakers",
    pending=lambda _now: [find_open_gates(gates.TYPE)],
)
def answer_gates(now: datetime) -> int:
    return gates.answer_open(now)


@ticks.tick(
    "breakers.overrides",
    seconds=1,
    queue="breakers",
    pending=lambda now: [overrides.past_expiry(now)],
)
def expire_overrides(now: datetime) -> int:
    return overrides.expire_due_overrides(now)


@ticks.tick("breakers.rediscover", seconds=30, queue="housekeeping")
def rediscover(now: datetime) -> int:
    """Make removed dependencies that are still reported visible again."""
    return discovered.rediscover(now)


@ticks.tick(
    "breakers.conditions",
    seconds=1,
    queue="breakers",
    pending=lambda _now: degradation_causes.pending(),
)
def report_degradation(now: datetime) -> int:
    """Evaluate the degradation of the installation by open breakers and probes."""
    return int(degradation_causes.report_causes(now))


@ticks.tick("breakers.outages", seconds=2, queue="breakers", pending=lambda _now: outages.pending())
def watch_outages(now: datetime) -> int:
    return outages.watch_outages(now)


@ticks.tick(
    stale_instances.TICK,
    seconds=5,
    queue="breakers",
    pending=lambda now: [stale_instances.pending(now)],
)
def notify_stale_instances(now: datetime) -> int:
    return stale_instances.notify_stale(now)


@ticks.tick("breakers.sample", seconds=10, queue="housekeeping")
def sample_breakers(now: datetime) -> int:
    return minutes.sample_states(now)


@ticks.tick("breakers.probe", seconds=10, queue="housekeeping")
def probe_services(now: datetime) -> int:
    """Probe services. Hanging targets take seconds, hence the housekeeping queue."""
    return probes.probe_due_services(now)


@ticks.tick("breakers.purge", seconds=3600, queue="housekeeping")
def purge_history(now: datetime) -> int:
    purged = retention_rules.purge(now, at_once=AT_ONCE, most=MAX_PURGED)
    return discovered.purge_discovered(now) + purged
