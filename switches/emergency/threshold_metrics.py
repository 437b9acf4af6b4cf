"""The threshold metric `emergency_orders`, on which users define alerts."""

from collections.abc import Collection, Iterator
from datetime import datetime

from controlplane.core.actors import label_of
from controlplane.core.canonical import timestamp
from controlplane.core.threshold_metrics import (
    ABOVE,
    AT_LEAST,
    COUNT,
    THRESHOLD_METRICS,
    MetricQuery,
    MetricReading,
    ThresholdMetric,
)
from switches.models import EmergencyOrder

from .attention import switch_path, unsettled_orders


def read_unsettled(query: MetricQuery, now: datetime) -> Iterator[MetricReading]:
    by_switch: dict[str, list[EmergencyOrder]] = {}
    for order in unsettled_orders(now).order_by("switch", "at", "pk"):
        by_switch.setdefault(order.switch, []).append(order)
    for switch, orders in by_switch.items():
        first = orders[0]
        is_refused = first.state == EmergencyOrder.State.REFUSED
        result = "was refused" if is_refused else "is not reconciled"
        yield MetricReading(
            subject=switch,
            value=len(orders),
            beyond=query.beyond(len(orders)),
            samples=len(orders),
            summary=f"The emergency order for {switch} {result}",
            path=switch_path(first),
            evidence={
                "ordered_by": label_of(first.by_type, first.by_name),
                "ordered_at": timestamp(first.at),
                "plane": first.plane,
                "reason": first.reason,
                "state": first.state,
                "refusal": first.refusal,
            },
        )


def list_listed(now: datetime) -> Collection[str]:
    """Return the switches of these orders, which have their own items on the attention page."""
    return set(unsettled_orders(now).values_list("switch", flat=True))


THRESHOLD_METRICS.register(
    ThresholdMetric(
        name="emergency_orders",
        title="Emergency orders without an engagement",
        unit=COUNT,
        statistics=("now",),
        about="Orders per switch that are refused, or not reconciled for 10 seconds.",
        read=read_unsettled,
        comparisons=(ABOVE, AT_LEAST),
        waiting=list_listed,
    )
)
