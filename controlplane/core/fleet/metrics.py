"""Prometheus metrics of the fleet."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from prometheus_client.core import Metric

from controlplane.core.exposition import make_family
from controlplane.core.fleet import queries
from controlplane.core.fleet.statuses import STATES
from controlplane.core.metrics import DATABASE_METRICS

KINDS = ("data plane", "relay")


@DATABASE_METRICS.add()
def collect_fleet(now: datetime) -> Iterator[Metric]:
    members = queries.load_fleet(now).members
    counts = Counter((member.kind, member.state) for member in members)
    yield make_family(
        "switchgear_fleet_members",
        "Data planes and relays by state: `silent`, `empty` and `lagging` ones need attention.",
        ["kind", "state"],
        (([kind, state], counts[kind, state]) for kind in KINDS for state in STATES),
    )
    lags = [(member, member.measure_lag(now)) for member in members]
    yield make_family(
        "switchgear_fleet_lag_seconds",
        "Seconds since the snapshot of a data plane or relay was last known to be current; absent"
        " without a snapshot.",
        ["name"],
        (([member.name], lag.total_seconds()) for member, lag in lags if lag is not None),
    )
    yield make_family(
        "switchgear_fleet_instances",
        "Instances that a data plane or relay heard in the last minute; absent while it is silent.",
        ["name"],
        (([member.name], member.instances) for member in members if not member.is_silent),
    )
