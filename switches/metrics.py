"""Prometheus metrics of switches and ramps.

Only switches that are engaged, ramping or just released get series of their own, since a console
may have tens of thousands of switches.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import QuerySet
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.samples import Sample

from controlplane.core.compiled_query import fetch_rows
from controlplane.core.metrics import DATABASE_METRICS
from switches.models import Ramp, Switch
from switches.scopes import SCOPES

RELEASED_WITHIN = timedelta(minutes=15)
"""Time for which a released switch keeps its series at 0, so that scrapes see the change."""
STATES = ("released", "engaged", "ramping")

_KNOWN = "SELECT scope, count(*) FROM switches_switch GROUP BY scope"
# Raw SQL without model instances: the result may have thousands of rows.
_IN_FORCE = """
    SELECT s.scope, s.key, CASE WHEN e.id IS NULL THEN 'released'
           WHEN e.allow_percent = 0 THEN 'engaged' ELSE 'ramping' END
    FROM switches_switch s
    LEFT JOIN switches_episode e ON e.switch_id = s.id AND e.ended_at IS NULL
    WHERE e.id IS NOT NULL OR s.committed_at >= %(since)s
    ORDER BY s.id
"""


@DATABASE_METRICS.add()
def collect_engaged(now: datetime) -> Iterator[Metric]:
    family = GaugeMetricFamily(
        "switchgear_switch_engaged",
        "1 while the switch is engaged, 0 while it ramps and for 15 minutes after its "
        "release; absent otherwise.",
        labels=["scope", "key"],
    )
    counts = {(scope, state): 0 for scope in SCOPES.names for state in STATES}
    with connection.cursor() as cursor:
        cursor.execute(_IN_FORCE, {"since": now - RELEASED_WITHIN})
        rows = cursor.fetchall()
        cursor.execute(_KNOWN)
        registered = cursor.fetchall()
    # Not add_metric(), which takes twice as long.
    family.samples = [
        Sample(family.name, {"scope": scope, "key": key}, int(state == "engaged"))
        for scope, key, state in rows
    ]
    counts |= Counter((scope, state) for scope, _, state in rows if state != "released")
    for scope, number in registered:
        counts[scope, "released"] = number - sum(counts[scope, state] for state in STATES)
    yield family
    totals = GaugeMetricFamily(
        "switchgear_switches",
        "Known switches by scope and state.",
        labels=["scope", "state"],
    )
    for (scope, state), number in counts.items():
        totals.add_metric([scope, state], number)
    yield totals


@DATABASE_METRICS.add()
def collect_last_proven(now: datetime) -> Iterator[Metric]:
    """Yield the time of the last passed drill for each switch that has one."""
    family = GaugeMetricFamily(
        "switchgear_switch_last_proven_timestamp_seconds",
        "UNIX time of the last passed drill; absent if there was none.",
        labels=["scope", "key"],
    )
    for scope, key, at in fetch_rows(_select_proven):
        family.add_metric([scope, key], at.timestamp())
    yield family


@DATABASE_METRICS.add()
def collect_ramping(now: datetime) -> Iterator[Metric]:
    labels = ["switch", "scope", "key"]
    step = GaugeMetricFamily(
        "switchgear_ramp_step",
        "Current step of the ramp, from 1; only while it ramps.",
        labels=labels,
    )
    percent = GaugeMetricFamily(
        "switchgear_ramp_percent",
        "Share of traffic allowed, in percent; only while it ramps.",
        labels=labels,
    )
    for pk, index, share in fetch_rows(_select_live_ramps):
        scope, _, key = pk.partition(":")
        step.add_metric([pk, scope, key], index + 1)
        percent.add_metric([pk, scope, key], float(share))
    yield step
    yield percent


def _select_proven() -> QuerySet[Switch, tuple[Any, ...]]:
    proven = Switch.objects.filter(last_proven_at__isnull=False).order_by("pk")
    return proven.values_list("scope", "key", "last_proven_at")


def _select_live_ramps() -> QuerySet[Ramp, tuple[Any, ...]]:
    live = Ramp.objects.filter(live=True, job__started_at__isnull=False).order_by("switch_id")
    return live.values_list("switch_id", "job__step_index", "episode__allow_percent")
