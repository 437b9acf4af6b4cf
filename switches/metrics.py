"""What Prometheus is told of switches."""

from collections.abc import Iterator
from datetime import datetime

from prometheus_client.core import GaugeMetricFamily, Metric

from controlplane.core import metrics
from switches.models import State, Switch


@metrics.from_database
def engaged(now: datetime) -> Iterator[Metric]:
    """Every switch ever registered, so that a series goes back to 0 and does not just end."""
    family = GaugeMetricFamily(
        "switchgear_switch_engaged", "1 while the switch is engaged.", labels=["scope", "key"]
    )
    stopped = set(Switch.objects.in_state(State.ENGAGED).values_list("pk", flat=True))
    for pk, scope, key in Switch.objects.order_by("pk").values_list("pk", "scope", "key"):
        family.add_metric([scope, key], int(pk in stopped))
    yield family
