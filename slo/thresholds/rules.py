"""The document of a threshold rule (its fields as JSON): validation, conversion, display."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from controlplane.core import durations, json_values
from controlplane.core.errors import InvalidInput
from controlplane.core.json_values import Errors, add_error
from controlplane.core.threshold_metrics import (
    ABOVE,
    AT_LEAST,
    AT_MOST,
    BELOW,
    COMPARISONS,
    RATIO,
    THRESHOLD_METRICS,
    ThresholdMetric,
    find_metric,
)
from slo.arithmetic.minutes import MINUTE
from slo.models import ThresholdRule
from slo.models.alerts import SEVERITIES
from slo.objectives import names
from slo.objectives.names import MAX_NAME_LENGTH

Document = dict[str, Any]

RESERVED_NAMES = frozenset({"new"})
"""Names that no threshold rule can have, because other pages have these URLs."""
MAX_EVENTS = 10**15
MAX_VALUE = 1e15
FIELDS = (
    "title", "metric", "statistic", "window", "comparison", "value", "min_events", "severity",
    "enabled", "runbook_url",
)  # fmt: skip

COMPARISON_WORDS = {ABOVE: "above", AT_LEAST: "at least", BELOW: "below", AT_MOST: "at most"}


def validate(name: str, fields: Mapping[str, Any]) -> Document:
    """Return `fields` as a complete rule document, without the name; omitted ones get defaults.

    Raise :class:`InvalidInput` naming each invalid field.
    """
    errors: Errors = {}
    names.check_name(name, RESERVED_NAMES, errors)
    json_values.refuse_unknown("", fields, FIELDS, errors)
    raw = {field: value for field, value in fields.items() if value is not None}
    metric = json_values.read_text("metric", raw.get("metric"), MAX_NAME_LENGTH, errors)
    metric_type = _find_metric(metric, errors)
    document = {
        "title": json_values.read_text("title", raw.get("title"), 200, errors),
        "metric": metric,
        # It may be omitted if the metric has only one.
        "statistic": json_values.read_choice(
            "statistic",
            raw.get(
                "statistic", metric_type.statistics[0] if len(metric_type.statistics) == 1 else None
            ),
            metric_type.statistics,
            errors,
        )
        if metric_type
        else "",
        "window": _read_window(raw.get("window", ""), metric_type, errors),
        "comparison": json_values.read_choice(
            "comparison",
            raw.get("comparison", ABOVE),
            metric_type.comparisons if metric_type else COMPARISONS,
            errors,
        ),
        "value": json_values.read_number("value", raw.get("value", 0), 0, MAX_VALUE, errors),
        "min_events": json_values.read_integer(
            "min_events", raw.get("min_events", 1), 0, MAX_EVENTS, errors
        ),
        "severity": json_values.read_choice("severity", raw.get("severity"), SEVERITIES, errors),
        "enabled": raw.get("enabled", True),
        "runbook_url": json_values.read_url("runbook_url", raw.get("runbook_url"), 500, errors),
    }
    if "value" not in raw:
        add_error(errors, "value", "Enter the value to compare with.")
    if not isinstance(document["enabled"], bool):
        add_error(errors, "enabled", "Must be true or false, without quotes.")
    if not errors and metric_type is not None:
        _refuse_constant_rules(document, metric_type, errors)
    if errors:
        raise InvalidInput(errors)
    return document


def to_document(rule: ThresholdRule) -> Document:
    """Return the document of a saved rule, without the name."""
    value = int(rule.value) if rule.value.is_integer() else rule.value
    special = {"value": value, "enabled": rule.is_enabled}
    return {name: special[name] if name in special else getattr(rule, name) for name in FIELDS}


def apply_document(rule: ThresholdRule, document: Mapping[str, Any]) -> None:
    """Set the fields of a rule from a validated document, without saving."""
    for field in FIELDS:
        setattr(rule, "is_enabled" if field == "enabled" else field, document[field])
    rule.value = float(document["value"])


def rule_window(rule: ThresholdRule) -> timedelta:
    """Return the rule's window, zero if its metric has none."""
    return durations.parse(rule.window) if rule.window else timedelta()


def describe_rule(rule: ThresholdRule) -> str:
    """Return a rule in words: `Timeout rate above 1 % in 5 min, of 20 at least`."""
    known = find_metric(rule.metric)
    title = known[0].title if known else rule.metric
    part = f" of {known[1]}" if known and known[1] else ""
    shown = known[0].format(rule.value) if known else f"{rule.value:g}"
    statistic = f"{rule.statistic} of " if known and len(known[0].statistics) > 1 else ""
    over = f" in {durations.format_readable(rule_window(rule))}" if rule.window else ""
    least = f", if at least {rule.min_events:,} events" if rule.min_events > 1 else ""
    text = f"{statistic}{title.lower() if statistic else title}{part}"
    return f"{text} {COMPARISON_WORDS[rule.comparison]} {shown}{over}{least}"


def _find_metric(metric: str, errors: Errors) -> ThresholdMetric | None:
    if "metric" in errors:
        return None
    found = find_metric(metric)
    if found is None:
        known = [
            f"{one.name} (or {one.name}:{one.parts.upper()})" if one.parts else one.name
            for one in THRESHOLD_METRICS.values()
        ]
        add_error(errors, "metric", f"Must be one of {', '.join(known)}.")
        return None
    return found[0]


def _read_window(raw: Any, metric_type: ThresholdMetric | None, errors: Errors) -> str:
    text = json_values.read_text("window", raw, 12, errors)
    if metric_type is None or "window" in errors:
        return ""
    if metric_type.windows is None:
        if text:
            message = f"{metric_type.name} is a current state; leave the window out."
            add_error(errors, "window", message)
        return ""
    shortest, longest = metric_type.windows
    try:
        found = durations.parse(text or "5m")
    except ValueError as error:
        add_error(errors, "window", str(error))
        return ""
    if found % MINUTE:
        add_error(errors, "window", "Must be of whole minutes, such as 5m, 1h or 3d.")
    elif not shortest <= found <= longest:
        between = f"{durations.format_canonical(shortest)} to {durations.format_canonical(longest)}"
        add_error(errors, "window", f"Must be from {between}.")
    return durations.format_canonical(found) if "window" not in errors else ""


def _refuse_constant_rules(
    document: Document, metric_type: ThresholdMetric, errors: Errors
) -> None:
    """Add an error for a rule that would never or always fire."""
    value, comparison = document["value"], document["comparison"]
    highest = 1 if metric_type.unit == RATIO else None
    if highest and value > highest:
        meant = f" {value:g} % is {value / 100:g}." if value <= 100 else ""
        add_error(errors, "value", f"Must be a share from 0 to 1.{meant}")
    elif (comparison, value) in {(BELOW, 0), (ABOVE, highest)}:
        add_error(errors, "value", "The metric can't exceed this value: the rule would never fire.")
    elif (comparison, value) in {(AT_LEAST, 0), (AT_MOST, highest)}:
        add_error(
            errors, "value", "The metric always exceeds this value: the rule would always fire."
        )
