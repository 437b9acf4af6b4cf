"""What Prometheus is told of switches."""

from collections.abc import Iterator
from datetime import datetime

from prometheus_client.core import GaugeMetricFamily, Metric

from controlplane.core import metrics
from switches.models import Ramp, State, Switch


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


@metrics.from_database
def last_proven(now: datetime) -> Iterator[Metric]:
    """Only switches that were ever proven: an alert on the age of the others is one on absence."""
    family = GaugeMetricFamily(
        "switchgear_switch_last_proven_timestamp_seconds",
        "When a drill last proved the switch, in UNIX seconds.",
        labels=["scope", "key"],
    )
    proven = Switch.objects.filter(last_proven_at__isnull=False).order_by("pk")
    for scope, key, at in proven.values_list("scope", "key", "last_proven_at"):
        family.add_metric([scope, key], at.timestamp() if at else 0)
    yield family


@metrics.from_database
def ramping(now: datetime) -> Iterator[Metric]:
    """Only ramps that are under way: nobody has to be told for ever what once ramped."""
    step = GaugeMetricFamily(
        "switchgear_ramp_step",
        "The step that the ramp of the switch is at, the first is 1.",
        labels=["switch"],
    )
    percent = GaugeMetricFamily(
        "switchgear_ramp_percent",
        "The share of its traffic that the ramping switch lets flow, in percent.",
        labels=["switch"],
    )
    live = Ramp.objects.filter(live=True, job__started_at__isnull=False).order_by("switch_id")
    for pk, index, share in live.values_list(
        "switch_id", "job__step_index", "episode__allow_percent"
    ):
        step.add_metric([pk], index + 1)
        percent.add_metric([pk], float(share))
    yield step
    yield percent
