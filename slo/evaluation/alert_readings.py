"""Present readings of alerts: what an alert's rule says now, beside what it said at the opening.

A burn-rate rule is read from the last evaluation of its SLO, a threshold rule from its last figure
beyond the limit.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from controlplane.core.freshness import Freshness, assess_freshness
from slo.arithmetic.evaluate import FIRING, UNKNOWN, format_burn_rate
from slo.arithmetic.minutes import EVALUATION_CADENCE, end_of
from slo.models import Alert, SloStatus

from .objective_loader import parse_rules

THRESHOLD_CADENCE = timedelta(minutes=1)
"""Greatest age of a threshold rule's figure while it fires: evaluation is every 10 s."""


@dataclass(frozen=True)
class AlertReading:
    """The `state` of an alert's rule (ok, firing or unknown), with the freshness of its figures.

    `rates` and `coverage` are by window (`5m`), empty for a threshold rule. `no_data_since` is set
    if the rule is unknown for lack of data.
    """

    state: str
    freshness: Freshness
    rates: Mapping[str, float | None] = field(default_factory=dict)
    coverage: Mapping[str, float | None] = field(default_factory=dict)
    no_data_since: datetime | None = None
    stale_label: str = "No evaluation since"

    @property
    def sentence(self) -> str:
        """Return the reading for texts outside pages, with times in UTC."""
        if self.freshness.at is None:
            return "Not evaluated yet."
        if not self.freshness.is_current:
            return f"{self.stale_label} {_format_time(self.freshness.at)}."
        if self.no_data_since is not None:
            return f"No data since {_format_time(self.no_data_since)}."
        rates = (f"{format_burn_rate(rate)} over {name}" for name, rate in self.rates.items())
        figures = " and ".join(rates)
        if self.state == FIRING:
            return f"Still firing: {figures} now." if figures else "Still firing."
        return f"Not firing now: {figures}." if figures else "Not firing now."


def read_alert(alert: Alert, now: datetime) -> AlertReading:
    """Return an alert's present reading. Select `slo__status` with the alert to save queries."""
    if alert.kind == Alert.Kind.THRESHOLD:
        freshness = assess_freshness(alert.last_fired_at, THRESHOLD_CADENCE, now)
        state = FIRING if freshness.is_current else UNKNOWN
        return AlertReading(state, freshness, stale_label="Not seen since")
    status: SloStatus | None = getattr(alert.slo, "status", None)
    if status is None:
        return AlertReading(UNKNOWN, assess_freshness(None, EVALUATION_CADENCE, now))
    freshness = assess_freshness(end_of(status.minute), EVALUATION_CADENCE, now)
    for rule, document in zip(parse_rules(status.rules), status.rules, strict=True):
        if rule.key == alert.rule:
            windows = (rule.long, rule.short)
            return AlertReading(
                document["state"],
                freshness,
                {name: status.burn_rates.get(name) for name in windows},
                {name: status.coverage.get(name) for name in windows},
                _find_no_data_since(alert, status) if document["state"] == UNKNOWN else None,
            )
    return AlertReading(UNKNOWN, freshness)


def _find_no_data_since(alert: Alert, status: SloStatus) -> datetime:
    """Return since when an unknown rule has no data.

    Only the whole SLO stores since when it is unknown; if another rule of it fires, the alert's own
    last firing is the latest time with data that is known.
    """
    return status.since if status.state == UNKNOWN else alert.last_fired_at


def _format_time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%-d %b %H:%M} UTC"
