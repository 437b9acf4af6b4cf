"""The document of a threshold rule: validated, converted from and to its row, and in words.

A rule may only use what its registered metric offers.
"""

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
from slo.models import ThresholdRule
from slo.models.alerts import SEVERITIES
from slo.objectives import names
from slo.objectives.names import MAX_NAME_LENGTH

Document = dict[str, Any]

RESERVED_NAMES = frozenset({"new"})
"""Names of fixed pages beside those of rules."""
MAX_EVENTS = 10**15
MAX_VALUE = 1e15
FIELDS = (
    "title", "metric", "statistic", "window", "comparison", "value", "min_events", "severity",
    "enabled", "runbook_url",
)  # fmt: skip

_MINUTE = timedelta(minutes=1)
_WORDS = {ABOVE: "above", AT_LEAST: "at least", BELOW: "below", AT_MOST: "at most"}


def validate(name: str, fields: Mapping[str, Any]) -> Document:
    """Return the whole document of these fields (without the name), defaults filled in.

    Raise :class:`InvalidInput`, which names each wrong field.
    """
    errors: Errors = {}
    names.check_name(name, RESERVED_NAMES, errors)
    json_values.refuse_unknown("", fields, FIELDS, errors)
    given = {field: value for field, value in fields.items() if value is not None}
    metric = json_values.read_text("metric", given.get("metric"), MAX_NAME_LENGTH, errors)
    measure = _measure(metric, errors)
    document = {
        "title": json_values.read_text("title", given.get("title"), 200, errors),
        "metric": metric,
        "statistic": _statistic(given, measure, errors),
        "window": _window(given.get("window", ""), measure, errors),
        "comparison": _comparison(given.get("comparison", ABOVE), measure, errors),
        "value": _parse_value(given.get("value"), errors),
        "min_events": json_values.read_integer(
            "min_events", given.get("min_events", 1), 0, MAX_EVENTS, errors
        ),
        "severity": json_values.read_choice("severity", given.get("severity"), SEVERITIES, errors),
        "enabled": _flag("enabled", given.get("enabled", True), errors),
        "runbook_url": json_values.read_url("runbook_url", given.get("runbook_url"), 500, errors),
    }
    if not errors and measure is not None:
        _refuse_constant_rules(document, measure, errors)
    if errors:
        raise InvalidInput(errors)
    return document


def to_document(rule: ThresholdRule) -> Document:
    """Return the document of a row, without the name."""
    found = {field: getattr(rule, field) for field in FIELDS if field != "enabled"}
    found["value"] = int(rule.value) if rule.value.is_integer() else rule.value
    found["enabled"] = rule.is_enabled
    return {field: found[field] for field in FIELDS}


def apply_document(rule: ThresholdRule, document: Mapping[str, Any]) -> None:
    """Set the fields of a row from a validated document; nothing is written."""
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
    least = f", of {rule.min_events:,} at least" if rule.min_events > 1 else ""
    text = f"{statistic}{title.lower() if statistic else title}{part}"
    return f"{text} {_WORDS[rule.comparison]} {shown}{over}{least}"


def is_valid_name(text: str) -> bool:
    return names.is_valid_name(text, RESERVED_NAMES)


def _measure(metric: str, errors: Errors) -> ThresholdMetric | None:
    if "metric" in errors:
        return None
    found = find_metric(metric)
    if found is None:
        add_error(errors, "metric", f"Must be one of {', '.join(_offered())}.")
        return None
    return found[0]


def _offered() -> list[str]:
    return [
        f"{one.name} (or {one.name}:{one.parts.upper()})" if one.parts else one.name
        for one in THRESHOLD_METRICS.values()
    ]


def _statistic(given: Mapping[str, Any], measure: ThresholdMetric | None, errors: Errors) -> str:
    """Return the statistic, which may be left out if the metric has only one."""
    if measure is None:
        return ""
    usual = measure.statistics[0] if len(measure.statistics) == 1 else None
    return json_values.read_choice(
        "statistic", given.get("statistic", usual), measure.statistics, errors
    )


def _comparison(given: Any, measure: ThresholdMetric | None, errors: Errors) -> str:
    choices = measure.comparisons if measure else COMPARISONS
    return json_values.read_choice("comparison", given, choices, errors)


def _window(given: Any, measure: ThresholdMetric | None, errors: Errors) -> str:
    text = json_values.read_text("window", given, 12, errors)
    if measure is None or "window" in errors:
        return ""
    if measure.windows is None:
        if text:
            add_error(errors, "window", f"{measure.name} is what is so now; leave the window out.")
        return ""
    shortest, longest = measure.windows
    try:
        found = durations.parse(text or "5m")
    except ValueError as error:
        add_error(errors, "window", str(error))
        return ""
    if found % _MINUTE:
        add_error(errors, "window", "Must be of whole minutes, such as 5m, 1h or 3d.")
    elif not shortest <= found <= longest:
        between = f"{durations.format_canonical(shortest)} to {durations.format_canonical(longest)}"
        add_error(errors, "window", f"Must be from {between}.")
    return durations.format_canonical(found) if "window" not in errors else ""


def _parse_value(given: Any, errors: Errors) -> float:
    if given is None:
        add_error(errors, "value", "Say with what it is compared.")
        return 0.0
    return json_values.read_number("value", given, 0, MAX_VALUE, errors)


def _flag(path: str, given: Any, errors: Errors) -> bool:
    if not isinstance(given, bool):
        add_error(errors, path, "Must be true or false, without quotes.")
    return bool(given)


def _refuse_constant_rules(document: Document, measure: ThresholdMetric, errors: Errors) -> None:
    """Refuse a rule that can never fire, or always does."""
    value, comparison = document["value"], document["comparison"]
    if measure.unit == RATIO and value > 1:
        meant = f" {value:g} % is {value / 100:g}." if value <= 100 else ""
        add_error(errors, "value", f"Must be a share from 0 to 1.{meant}")
    elif (comparison == BELOW and value == 0) or (
        comparison == ABOVE and measure.unit == RATIO and value == 1
    ):
        add_error(errors, "value", "No figure can be beyond that: the rule would never fire.")
    elif (comparison == AT_LEAST and value == 0) or (
        comparison == AT_MOST and measure.unit == RATIO and value == 1
    ):
        add_error(errors, "value", "Every figure is beyond that: the rule would always fire.")
