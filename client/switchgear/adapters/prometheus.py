"""Metrics of one client for `prometheus_client`, as counted in this process.

Their names begin with `switchgear_client_`. The console's metrics, such as
`switchgear_circuit_breaker_state`, cover all instances; the names differ so that no sum includes
both.
"""

import threading
from collections.abc import Iterable, Iterator

from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from switchgear import journal
from switchgear.client import Switchgear
from switchgear.patterns import forks
from switchgear.patterns.permits import Occupancy
from switchgear.policies.dependency import Dependency
from switchgear.policies.registry import MAX_BREAKERS

STATES = {"closed": 0, "open": 1, "half_open": 2}
PAIR = ("caller", "callee")
RESULTS = ("success", "failure", "timeout")
CALL_COUNTERS = {
    "slow": "Slow calls, regardless of result.",
    "rejected": "Calls rejected by an open breaker.",
    "retry": "Retried calls.",
    "fallback": "Calls answered by a fallback.",
}
BULKHEAD_GAUGES = {
    "in_flight": "Calls in progress.",
    "limit": "Places.",
    "queued": "Calls waiting in the queue.",
    "queue_limit": "Maximum number of waiting calls.",
}


def expose(client: Switchgear, registry: CollectorRegistry = REGISTRY) -> "Metrics":
    """Register the metrics of `client` and return them; `close()` unregisters them."""
    metrics = Metrics(client, registry)
    registry.register(metrics)
    return metrics


class Metrics(Collector):
    """A collector of a client's metrics, which are read at each scrape.

    It has values for at most 500 reported dependencies.
    """

    def __init__(self, client: Switchgear, registry: CollectorRegistry) -> None:
        self._client = client
        self._registry = registry
        self._trips = TripCounter()
        self._end = journal.add_hook(self._trips)

    def close(self) -> None:
        """Unregister the metrics."""
        self._end()
        self._registry.unregister(self)

    def describe(self) -> Iterable[Metric]:
        """Return no metrics, so that registering this collector does not read values."""
        return ()

    def collect(self) -> Iterator[Metric]:
        found = self._client.dependencies()[:MAX_BREAKERS]
        yield from self._collect_breakers(found)
        yield from _collect_calls(found)
        yield from _collect_bulkheads(found)
        yield from self._collect_client_state()

    def _collect_breakers(self, found: list[Dependency]) -> Iterator[Metric]:
        state = _gauge("circuit_breaker_state", "0 closed, 1 open, 2 half-open.")
        about_rate = "Failure rate of the calls in the window; absent while there are too few."
        rate = _gauge("circuit_breaker_failure_ratio", about_rate)
        trips = _counter("circuit_breaker_trips", "Number of times the breaker opened.")
        for each in found:
            if each.breaker is None:
                continue
            status = each.breaker.look()
            state.add_metric(_split_name(each), STATES[status.state])
            trips.add_metric(_split_name(each), self._trips.count(each.name))
            if status.failure_rate is not None:
                rate.add_metric(_split_name(each), status.failure_rate)
        yield from (state, rate, trips)

    def _collect_client_state(self) -> Iterator[Metric]:
        status = self._client.status()
        yield GaugeMetricFamily(
            "switchgear_client_switches_stopped",
            "Switches that are engaged or ramping.",
            value=status.stopped,
        )
        for name, text, value in (
            ("snapshot_version", "Version of the applied snapshot.", status.version),
            (
                "snapshot_age_seconds",
                "Seconds since the console confirmed the snapshot.",
                status.age_seconds,
            ),
            ("config_version", "Version of the applied policies.", status.config_version),
        ):
            if value is not None:
                yield GaugeMetricFamily(f"switchgear_client_{name}", text, value=value)


class TripCounter:
    """A counter of the times each breaker opened in this process, for at most `MAX_BREAKERS`."""

    def __init__(self) -> None:
        self.after_fork()
        forks.register(self)

    def __call__(self, entry: journal.Entry) -> None:
        if entry.name == "circuit_breaker_opened":
            with self._lock:
                if entry.about in self._counts or len(self._counts) < MAX_BREAKERS:
                    self._counts[entry.about] = self._counts.get(entry.about, 0) + 1

    def count(self, name: str) -> int:
        return self._counts.get(name, 0)

    def after_fork(self) -> None:
        self._lock = threading.RLock()
        self._counts: dict[str, int] = {}


def _collect_calls(found: list[Dependency]) -> Iterator[Metric]:
    calls = _counter("calls", "Finished calls, by result.", (*PAIR, "result"))
    others = {name: _counter(f"calls_{name}", text) for name, text in CALL_COUNTERS.items()}
    for each in found:
        counted = each.counters.counted()
        for result in RESULTS:
            calls.add_metric([*_split_name(each), result], counted[result])
        for name, family in others.items():
            family.add_metric(_split_name(each), counted[name])
    yield calls
    yield from others.values()


def _collect_bulkheads(found: list[Dependency]) -> Iterator[Metric]:
    families = {name: _gauge(f"bulkhead_{name}", text) for name, text in BULKHEAD_GAUGES.items()}
    rejected = _counter("bulkhead_rejected", "Calls rejected because the bulkhead was full.")
    for each in found:
        bulkhead = each.bulkhead
        occupancy: Occupancy | None = None if bulkhead is None else bulkhead.look()
        if occupancy is None or occupancy.limit is None:
            continue
        for name, family in families.items():
            family.add_metric(_split_name(each), getattr(occupancy, name))
        rejected.add_metric(_split_name(each), occupancy.rejected)
    yield from families.values()
    yield rejected


def _gauge(name: str, text: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"switchgear_client_{name}", text, labels=PAIR)


def _counter(name: str, text: str, labels: tuple[str, ...] = PAIR) -> CounterMetricFamily:
    return CounterMetricFamily(f"switchgear_client_{name}", text, labels=labels)


def _split_name(dependency: Dependency) -> list[str]:
    return dependency.name.split("->", 1)
