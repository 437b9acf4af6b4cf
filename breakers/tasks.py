"""The ticks of breakers."""

from datetime import datetime

from breakers.outages import services as outages
from breakers.probes import services as probes
from controlplane.core import ticks
from controlplane.core.gates.services import find_open_gates

from . import degradation_causes, gate_kinds
from .services import discovery, overrides
from .states import minutes, retention_rules, stale_instances

AT_ONCE = 5000
MAX_PURGED = 1_000_000


@ticks.tick(
    "breakers.gates",
    seconds=1,
    queue="breakers",
    pending=lambda _now: [find_open_gates(gate_kinds.TYPE)],
)
def answer_gates(now: datetime) -> int:
    return gate_kinds.answer_gates(now)


@ticks.tick(
    "breakers.overrides",
    seconds=1,
    queue="breakers",
    pending=lambda now: [overrides.past_expiry(now)],
)
def expire_overrides(now: datetime) -> int:
    return overrides.expire_due_overrides(now)


@ticks.tick("breakers.rediscover", seconds=30, queue="housekeeping")
def rediscover_dependencies(now: datetime) -> int:
    return discovery.rediscover_dependencies(now)


@ticks.tick(
    "breakers.conditions",
    seconds=1,
    queue="breakers",
    pending=lambda _now: degradation_causes.list_pending(),
)
def report_degradation(now: datetime) -> int:
    return int(degradation_causes.report_causes(now))


@ticks.tick(
    "breakers.outages", seconds=2, queue="breakers", pending=lambda _now: outages.list_pending()
)
def watch_outages(now: datetime) -> int:
    return outages.watch_outages(now)


@ticks.tick(
    stale_instances.TICK,
    seconds=5,
    queue="breakers",
    pending=lambda now: [stale_instances.find_pending(now)],
)
def notify_stale_instances(now: datetime) -> int:
    return stale_instances.notify_stale(now)


@ticks.tick("breakers.sample", seconds=10, queue="housekeeping")
def sample_breakers(now: datetime) -> int:
    return minutes.sample_states(now)


@ticks.tick("breakers.probe", seconds=10, queue="housekeeping")
def probe_services(now: datetime) -> int:
    """Probe services on the housekeeping queue, as targets that hang take seconds."""
    return probes.probe_due_services(now)


@ticks.tick("breakers.purge", seconds=3600, queue="housekeeping")
def purge_history(now: datetime) -> int:
    purged = retention_rules.purge(now, at_once=AT_ONCE, most=MAX_PURGED)
    return discovery.purge_discovered(now) + purged
