"""Prometheus metrics of emergency orders."""

from collections.abc import Iterator
from datetime import datetime

from django.db.models import Count
from prometheus_client.core import GaugeMetricFamily, Metric

from controlplane.core.metrics import DATABASE_METRICS
from switches.models import EmergencyOrder

State = EmergencyOrder.State


@DATABASE_METRICS.add()
def collect_open_orders(now: datetime) -> Iterator[Metric]:
    family = GaugeMetricFamily(
        "switchgear_emergency_orders",
        "Emergency orders that block a switch and are no engagement yet: `received` ones wait to be"
        " reconciled, `refused` ones end within 10 minutes.",
        labels=["state"],
    )
    rows = EmergencyOrder.objects.filter(closed_at__isnull=True).order_by()
    counts = dict(rows.values_list("state").annotate(Count("pk")))
    for state in (State.RECEIVED, State.REFUSED):
        family.add_metric([state.value], counts.get(state.value, 0))
    yield family
