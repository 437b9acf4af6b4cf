"""The form of a threshold rule. Shares are written in percent."""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from django import forms

from controlplane.core.change_views import ServiceForm
from controlplane.core.reasons import MAX_CHARACTERS
from controlplane.core.threshold_metrics import (
    ABOVE,
    AT_LEAST,
    AT_MOST,
    BELOW,
    RATIO,
    ThresholdMetric,
    find_metric,
)
from slo.models import ThresholdRule
from slo.thresholds import rules

COMPARISONS = {ABOVE: "above", AT_LEAST: "at least", BELOW: "below", AT_MOST: "at most"}
SEVERITIES = (
    ("critical", "Critical", "somebody is called at once"),
    ("warning", "Warning", "the team answers within half an hour"),
    ("info", "Info", "it is said, and nobody is called"),
)
_HUNDRED = Decimal(100)


class ThresholdForm(ServiceForm):
    """A rule about one metric; the service validates it."""

    name = forms.CharField(max_length=400, required=False)
    title = forms.CharField(max_length=400, required=False)
    part = forms.CharField(max_length=400, required=False)
    statistic = forms.CharField(max_length=40, required=False)
    comparison = forms.CharField(max_length=2, required=False)
    value = forms.CharField(max_length=40, required=False)
    window = forms.CharField(max_length=40, required=False)
    min_events = forms.CharField(max_length=40, required=False)
    severity = forms.CharField(max_length=20, required=False)
    enabled = forms.BooleanField(required=False)
    runbook_url = forms.CharField(max_length=1000, required=False)
    reason = forms.CharField(max_length=MAX_CHARACTERS, required=False)
    version = forms.IntegerField(required=False, min_value=1)

    renamed = {"metric": "part"}

    def asked(self, measure: ThresholdMetric) -> dict[str, Any]:
        """Return the fields for the service; unreadable numbers stay texts, which it refuses."""
        part = self.given("part").strip()
        return {
            "title": self.given("title"),
            "metric": f"{measure.name}:{part}" if part else measure.name,
            "statistic": self.given("statistic") or None,
            "window": self.given("window").strip() if measure.windows else "",
            "comparison": self.given("comparison") or None,
            "value": _value(self.given("value"), measure),
            "min_events": _whole(self.given("min_events")),
            "severity": self.given("severity"),
            "enabled": bool(self.cleaned_data.get("enabled")),
            "runbook_url": self.given("runbook_url"),
        }


def new_rule_initial(measure: ThresholdMetric) -> dict[str, Any]:
    """Return the form's initial values for a new rule."""
    return {
        "statistic": measure.statistics[0],
        "comparison": measure.comparisons[0],
        "window": "5m" if measure.windows else "",
        "min_events": "1",
        "severity": "warning",
        "enabled": True,
    }


def rule_initial(rule: ThresholdRule) -> dict[str, Any]:
    """Return the form's initial values for an existing rule."""
    known = find_metric(rule.metric)
    is_share = known is not None and known[0].unit == RATIO
    value = Decimal(repr(rule.value)) * (_HUNDRED if is_share else 1)
    return {
        **rules.to_document(rule),
        "name": rule.name,
        "part": known[1] if known else "",
        "value": f"{value.normalize():f}",
        "min_events": str(rule.min_events),
        "version": rule.version,
    }


def form_choices(measure: ThresholdMetric) -> Mapping[str, Any]:
    """Return the choices that a metric offers."""
    return {
        "statistics": measure.statistics if len(measure.statistics) > 1 else (),
        "comparisons": [(sign, COMPARISONS[sign]) for sign in measure.comparisons],
        "severities": SEVERITIES,
        "unit": "%" if measure.unit == RATIO else "ms" if measure.unit == "ms" else "",
    }


def _value(text: str, measure: ThresholdMetric) -> float | str | None:
    typed = text.strip().removesuffix("%").replace(",", "").strip()
    if not typed:
        return None
    try:
        number = Decimal(typed)
    except InvalidOperation:
        return text
    if not number.is_finite():
        return text
    return float(number / _HUNDRED if measure.unit == RATIO else number)


def _whole(text: str) -> int | str | None:
    typed = text.strip().replace(",", "")
    return int(typed) if typed.isascii() and typed.isdigit() and len(typed) < 19 else text or None
