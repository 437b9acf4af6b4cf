"""Template tags of alerts and SLO forms."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

from django import template
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from controlplane.core import durations
from controlplane.core.templatetags.screen import state_badge
from controlplane.core.threshold_metrics import find_metric
from slo.arithmetic.evaluate import format_burn_rate
from slo.arithmetic.minutes import window_minutes
from slo.arithmetic.objective import PAGE, RuleMeaning, describe_rule_key
from slo.backtests.trials import RuleTrial
from slo.evaluation.alert_readings import read_alert
from slo.models import Alert
from slo.objectives import documents

register = template.Library()
register.filter("long", durations.format_readable)
register.filter("reading", read_alert)
register.filter("burn_rate", format_burn_rate)

_FIELDS = {
    **documents.FIELD_LABELS,
    "source.url": "address",
    "source.good": "good events",
    "source.total": "all events",
}
# Tone and icon by severity; icon, word and tone by state.
_LOOKS = {
    "critical": ("engaged", "critical"),
    "warning": ("pending", "warning"),
    "info": ("quiet", "info"),
}
_STATES = {
    "open": ("attention", "Open", "quiet"),
    "acknowledged": ("eye", "Acknowledged", "pending"),
    "resolved": ("check", "Resolved", "released"),
}


@register.filter
def figure(value: Decimal | float | None) -> str:
    """Format a figure without needless decimals: `1,000`, `333.3`, `14.4`; – for None."""
    if value is None:
        return "–"
    number = float(value)
    digits = 0 if abs(number) >= 1000 else 1 if abs(number) >= 100 else 2
    shown = f"{number:,.{digits}f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


@register.filter
def share(value: float | Decimal | None) -> str:
    """Format a share (0 to 1) in percent, `82.4 %`; – for None."""
    if value is None:
        return "–"
    shown = f"{float(value) * 100:,.1f}"
    return f"{shown.removesuffix('.0')} %"


@register.filter
def minutes_long(minutes: int) -> str:
    return durations.format_readable(timedelta(minutes=minutes))


@register.filter
def field_word(path: str) -> str:
    """Return the readable name of a field path: `rule 1, burn rate` for `rules.0.burn_rate`."""
    first, _, rest = path.partition(".")
    place, _, name = rest.partition(".")
    if first in {"rules", "actions"} and place.isdigit():
        label = f"{first[:-1]} {int(place) + 1}"
        return f"{label}, {name.replace('_', ' ')}" if name else label
    return _FIELDS.get(path, path.replace("_", " "))


@register.simple_tag
def meaning(rule_meaning: RuleMeaning) -> SafeString:
    """Return sentences about a burn-rate rule: when it fires and stops, and what it misses."""
    return format_html(
        "Fires <b>{}</b> into a full outage. A burn rate just below the limit spends <b>{}</b> "
        "of the budget in {}. Stops firing {} after the outage.",
        minutes_long(rule_meaning.after),
        share(rule_meaning.spent),
        minutes_long(window_minutes(rule_meaning.rule.long)),
        minutes_long(rule_meaning.resets),
    )


@register.filter
def rule_words(alert: Alert) -> str:
    """Return the rule of an alert: a burn-rate rule in words, or the title of a threshold rule."""
    if alert.kind == Alert.Kind.THRESHOLD:
        title = alert.threshold.title if alert.threshold else ""
        return title or alert.rule.replace("_", " ").replace("-", " ")
    return describe_rule_key(alert.rule)


@register.filter
def in_unit(value: float | None, alert: Alert) -> str:
    """Format a figure in the unit of the alert's threshold rule."""
    if value is None:
        return "–"
    known = find_metric(alert.threshold.metric) if alert.threshold else None
    return known[0].format(value) if known else figure(value)


@register.filter
def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@register.simple_tag
def burn_bar(rate: float | None, limit: float) -> SafeString:
    """Draw a bar for the burn rate of a window; the limit of the rule is in the middle."""
    ratio = 0.0 if rate is None else min(2.0, rate / limit)
    above = rate is not None and rate > limit
    return format_html(
        '<svg class="burn__bar{}" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"'
        ' focusable="false"><rect class="burn__ground" width="100" height="8" rx="2" /><rect'
        ' class="burn__part" width="{}" height="8" rx="2" /><line class="burn__limit" x1="50"'
        ' x2="50" y1="0" y2="8" /></svg>',
        " burn__bar--above" if above else "",
        round(ratio * 50, 1),
    )


@register.simple_tag
def rule_severity_mark(name: str) -> SafeString:
    tone, symbol = _LOOKS["critical" if name == PAGE else "warning"]
    return state_badge(symbol, name.capitalize(), tone)


@register.simple_tag
def trial_strip(trial: RuleTrial) -> SafeString:
    bars = format_html_join(
        "",
        '<rect class="backtest-rule__fired backtest-rule__fired--{}"'
        ' x="{}" width="{}" y="0" height="10" />',
        ((trial.rule.severity, x, width) for x, width in trial.places),
    )
    times = len(trial.places)
    label = f"It fires {times} time{'' if times == 1 else 's'}" if times else "It never fires"
    return format_html(
        '<svg class="backtest-rule__strip" viewBox="0 0 100 10" preserveAspectRatio="none"'
        ' role="img" aria-label="{}">{}</svg>',
        label,
        bars,
    )


@register.filter
def worst_of(worst: dict[str, float], window: str) -> str:
    return figure(worst.get(window))


@register.simple_tag
def switch_page(switch: str) -> str:
    return reverse("switch_page", args=switch.split(":", 1))


@register.simple_tag
def severity(alert: Alert) -> SafeString:
    tone, symbol = _LOOKS[alert.severity]
    word = (alert.label or alert.severity).capitalize()
    return state_badge(symbol, word, tone if alert.resolved_at is None else "quiet")


@register.simple_tag
def alert_state(state: str) -> SafeString:
    return state_badge(*_STATES[state])
