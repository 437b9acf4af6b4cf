"""Prometheus metrics of breakers, overrides, alarms and the degradation level."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db.models import Count, QuerySet
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from breakers.models import Alarm, Dependency, Override, Probe
from breakers.outages import services as outages
from controlplane.core import exposition
from controlplane.core.compiled_query import fetch_rows
from controlplane.core.degradation import services as degradation
from controlplane.core.freshness import INSTANCE_CADENCE
from controlplane.core.instances.exports import UNSTOPPED_BOOT
from controlplane.core.metrics import DATABASE_METRICS
from controlplane.core.sql import fetch_all

from .states.dependency_status import CLOSED, HALF_OPEN, OPEN, UNKNOWN

PAIR = ("caller", "callee")
CODES = {CLOSED: 0, OPEN: 1, HALF_OPEN: 2}

# Dependencies that were never reported are left out: most are, and they are counted apart.
_WORST_STATES = f"""
    SELECT d.caller, d.callee, d.trips_total, d.fallback_total,
           CASE WHEN reported.open THEN 'open' WHEN reported.half_open THEN 'half_open'
                WHEN reported.dependency_id IS NOT NULL THEN 'closed' ELSE 'unknown' END,
           d.removed_at IS NULL AND reported.dependency_id IS NOT NULL
    FROM breakers_dependency d LEFT JOIN (
        SELECT s.dependency_id, bool_or(s.state = 'open') AS open,
               bool_or(s.state = 'half_open') AS half_open
        FROM breakers_breakerstate s
        JOIN {UNSTOPPED_BOOT}
        WHERE i.reported_at >= %(fresh)s
        GROUP BY s.dependency_id
    ) reported ON reported.dependency_id = d.id
    WHERE reported.dependency_id IS NOT NULL
       OR (d.removed_at IS NULL AND (d.trips_total > 0 OR d.fallback_total > 0))
    ORDER BY d.caller, d.callee
"""  # noqa: S608


@DATABASE_METRICS.add()
def collect_breakers(now: datetime) -> Iterator[Metric]:
    """Yield the metrics of breakers by dependency: state, trips and fallbacks."""
    state = GaugeMetricFamily(
        "switchgear_circuit_breaker_state",
        "0 closed, 1 open, 2 half-open: the worst state among reporting "
        "instances; absent if none reports.",
        labels=PAIR,
    )
    trips = CounterMetricFamily(
        "switchgear_circuit_breaker_trips",
        "Number of times breakers opened; absent while it is 0 and no instance reports.",
        labels=PAIR,
    )
    fallbacks = CounterMetricFamily(
        "switchgear_circuit_breaker_fallback",
        "Number of calls answered by a fallback; absent while no instance reports and both are 0.",
        labels=PAIR,
    )
    counts = dict.fromkeys((*CODES, UNKNOWN), 0)
    reported = 0
    rows = fetch_all(_WORST_STATES, {"fresh": now - INSTANCE_CADENCE})
    registered = Dependency.objects.registered().count()
    for caller, callee, opened, fell_back, worst, is_reported in rows:
        reported += is_reported
        counts[worst] += 1
        trips.add_metric([caller, callee], opened)
        fallbacks.add_metric([caller, callee], fell_back)
        if worst in CODES:
            state.add_metric([caller, callee], CODES[worst])
    counts[UNKNOWN] = registered - reported
    yield from (state, trips, fallbacks)
    yield _labeled_gauge(
        "switchgear_dependencies",
        "Dependencies by the worst state of their breakers; unknown: no instance reports.",
        "state",
        counts,
    )


@DATABASE_METRICS.add()
def collect_overrides(now: datetime) -> Iterator[Metric]:
    """Yield the number of live overrides for every mode, 0 included."""
    counts = {str(mode): 0 for mode in Override.Mode.values} | dict(fetch_rows(_count_overrides))
    yield _labeled_gauge("switchgear_breaker_overrides", "Active overrides.", "mode", counts)


@DATABASE_METRICS.add()
def collect_alarms(now: datetime) -> Iterator[Metric]:
    """Yield the number of ongoing outages; the app `slo` counts open alerts of threshold rules."""
    counts = {outages.RULE: 0} | dict(fetch_rows(_count_alarms))
    yield _labeled_gauge(
        "switchgear_breaker_alarms", "Ongoing outages of dependencies.", "rule", counts
    )


@DATABASE_METRICS.add()
def collect_degradation(now: datetime) -> Iterator[Metric]:
    yield exposition.make_gauge(
        "switchgear_degradation_level",
        "0 normal, 1 degraded, 2 critical, 3 emergency.",
        degradation.load_degradation().level,
    )
    up = {slug: int(not is_away) for slug, is_away in fetch_rows(_list_probes)}
    yield _labeled_gauge(
        "switchgear_probe_up", "1 while the service responds to its probe.", "service", up
    )


def _count_overrides() -> QuerySet[Override, tuple[Any, ...]]:
    live = Override.objects.filter(ended_at__isnull=True).order_by()
    return live.values_list("mode").annotate(Count("pk"))


def _count_alarms() -> QuerySet[Alarm, tuple[Any, ...]]:
    live = Alarm.objects.filter(closed_at__isnull=True).order_by()
    return live.values_list("rule").annotate(Count("pk"))


def _list_probes() -> QuerySet[Probe, tuple[Any, ...]]:
    return Probe.objects.filter(since__isnull=False).order_by("pk").values_list("pk", "is_away")


def _labeled_gauge(name: str, help_text: str, label: str, values: dict[str, int]) -> Metric:
    family = GaugeMetricFamily(name, help_text, labels=[label])
    for value, number in values.items():
        family.add_metric([value], number)
    return family
