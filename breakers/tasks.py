"""Periodic tasks (ticks) of breakers."""

from datetime import datetime

from breakers.outages import services as outages
from breakers.probes import services as probes
from controlplane.core import retention, ticks
from controlplane.core.gates.services import find_open_gates

from . import degradation_causes, gate_kinds
from .services import discovery, overrides
from .states import minutes, retention_rules, stale_instances


def purge_history(now: datetime) -> int:
    purged = retention.purge(retention_rules.RULES, now, at_once=5000, most=1_000_000)
    return discovery.purge_discovered(now) + purged


for name, seconds, run, pending in (
    (
        "breakers.gates",
        1,
        gate_kinds.answer_gates,
        lambda _now: [find_open_gates(gate_kinds.TYPE)],
    ),
    (
        "breakers.overrides",
        1,
        overrides.expire_due_overrides,
        lambda now: [overrides.past_expiry(now)],
    ),
    (
        "breakers.conditions",
        1,
        lambda now: int(degradation_causes.report_causes(now)),
        lambda _now: degradation_causes.list_pending(),
    ),
    ("breakers.outages", 2, outages.watch_outages, lambda _now: outages.list_pending()),
    (
        stale_instances.TICK,
        5,
        stale_instances.notify_stale,
        lambda now: [stale_instances.find_pending(now)],
    ),
):
    ticks.tick(name, seconds=seconds, queue="breakers", pending=pending)(run)

# Not on the queue of breakers: probes of hanging targets take seconds, as purging may.
for name, seconds, run in (
    ("breakers.rediscover", 30, discovery.rediscover_dependencies),
    ("breakers.sample", 10, minutes.sample_states),
    ("breakers.probe", 10, probes.probe_due_services),
    ("breakers.purge", 3600, purge_history),
):
    ticks.tick(name, seconds=seconds, queue="housekeeping")(run)
