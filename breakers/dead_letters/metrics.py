"""Prometheus metrics of dead letters."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from breakers.dead_letters import sources
from breakers.dead_letters.models import LetterServer, LetterStream
from controlplane.core.compiled_query import fetch_rows
from controlplane.core.metrics import DATABASE_METRICS

from .monitoring import streams


@DATABASE_METRICS.add()
def dead_letters(now: datetime) -> Iterator[Metric]:
    """A stream's label is its name, with the server before it unless that is the default one."""
    depth = GaugeMetricFamily(
        "switchgear_dlq_depth", "Dead letters that lie in a stream.", labels=["stream"]
    )
    alerting = GaugeMetricFamily(
        "switchgear_dlq_alerting", "1 while a stream is too deep for long.", labels=["stream"]
    )
    arrived = CounterMetricFamily(
        "switchgear_dlq_messages", "Dead letters that arrived.", labels=["stream"]
    )
    retried = CounterMetricFamily(
        "switchgear_dlq_reprocessed", "Dead letters that went back.", labels=["stream"]
    )
    vanished = CounterMetricFamily(
        "switchgear_dlq_vanished", "Dead letters gone, and not through us.", labels=["stream"]
    )
    for one in streams.list_shown(now):
        label = [_label(one)]
        depth.add_metric(label, one.depth)
        alerting.add_metric(label, int(one.alarmed_at is not None))
        arrived.add_metric(label, one.arrived_total)
        retried.add_metric(label, one.retried_total)
        vanished.add_metric(label, one.vanished_total)
    yield from (depth, alerting, arrived, retried, vanished)
    up = GaugeMetricFamily(
        "switchgear_dlq_server_up", "1 while the Redis server answers.", labels=["server"]
    )
    for name, is_away in fetch_rows(_servers):
        up.add_metric([name], int(not is_away))
    yield up


def _label(stream: LetterStream) -> str:
    is_default = stream.server == sources.DEFAULT_SERVER
    return stream.name if is_default else f"{stream.server}/{stream.name}"


def _servers() -> QuerySet[LetterServer, tuple[Any, ...]]:
    return LetterServer.objects.order_by("pk").values_list("pk", "is_away")
