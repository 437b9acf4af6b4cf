"""Prometheus metrics of dead letters."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from breakers.dead_letters import sources
from breakers.dead_letters.models import LetterServer
from controlplane.core.compiled_query import fetch_rows
from controlplane.core.metrics import DATABASE_METRICS

from .monitoring import streams

COUNTERS = (
    ("switchgear_dlq_messages", "arrived_total", "Dead letters that arrived."),
    ("switchgear_dlq_reprocessed", "retried_total", "Dead letters that were retried."),
    ("switchgear_dlq_vanished", "vanished_total", "Dead letters that other Redis clients removed."),
)
"""Metric name, attribute of the stream, and help text."""


@DATABASE_METRICS.add()
def dead_letters(now: datetime) -> Iterator[Metric]:
    """Yield the metrics of dead letter streams and of their servers.

    The label of a stream is `server/name`, or only `name` on the default server.
    """
    shown = streams.list_shown(now)
    labels = [[one.name if one.server == sources.DEFAULT_SERVER else str(one)] for one in shown]
    depth = GaugeMetricFamily(
        "switchgear_dlq_depth", "Dead letters in a stream.", labels=["stream"]
    )
    alerting = GaugeMetricFamily(
        "switchgear_dlq_alerting", "1 while a stream has an alarm.", labels=["stream"]
    )
    for label, one in zip(labels, shown, strict=True):
        depth.add_metric(label, one.depth)
        alerting.add_metric(label, int(one.alarmed_at is not None))
    yield from (depth, alerting)
    for metric_name, attribute, text in COUNTERS:
        counter = CounterMetricFamily(metric_name, text, labels=["stream"])
        for label, one in zip(labels, shown, strict=True):
            counter.add_metric(label, getattr(one, attribute))
        yield counter
    up = GaugeMetricFamily(
        "switchgear_dlq_server_up", "1 if the Redis server responds.", labels=["server"]
    )
    for name, is_away in fetch_rows(_select_servers):
        up.add_metric([name], int(not is_away))
    yield up


def _select_servers() -> QuerySet[LetterServer, tuple[Any, ...]]:
    return LetterServer.objects.order_by("pk").values_list("pk", "is_away")
