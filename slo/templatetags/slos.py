"""Template tags of SLOs: states, rules and readable figures."""

from datetime import datetime, timedelta

from django import template
from django.contrib.staticfiles.storage import staticfiles_storage
from django.db import DatabaseError, InterfaceError
from django.utils.html import format_html
from django.utils.safestring import SafeString

from controlplane.core import durations
from controlplane.core.templatetags.screen import icon, state_badge
from slo.arithmetic.evaluate import format_burn_rate
from slo.arithmetic.minutes import window_minutes
from slo.dashboard.annotations import Annotation
from slo.models import Alert, Slo
from slo.objectives import documents

register = template.Library()
register.filter("target", documents.format_percent)
register.filter("long_for", durations.format_readable)
register.filter("action_words", documents.describe_action)

# condition → icon, word, tone
CONDITIONS = {
    "page": ("critical", "Paging", "overdue"),
    "ticket": ("warning", "Burning", "engaged"),
    "spent": ("spent", "Spent", "pending"),
    "unknown": ("unknown", "Unknown", "quiet"),
    "ok": ("released", "OK", "released"),
}
RULE_STATES = {
    "firing": ("warning", "Firing", "engaged"),
    "unknown": ("unknown", "Unknown", "quiet"),
    "ok": ("released", "OK", "released"),
}
SEVERITIES = {"page": ("critical", "Page"), "ticket": ("warning", "Ticket")}
LASTING = {"firing": "Firing for", "ok": "OK for", "unknown": "Unknown for"}
MARKS = {
    "alert": ("warning", "Alert"),
    "episode": ("engaged", "Engaged"),
    "ramp": ("ramping", "Ramp"),
    "exclusion": ("hidden", "Excluded"),
}
ALERT_STATES = {
    "open": ("warning", "Open", "engaged"),
    "acknowledged": ("eye", "Acknowledged", "pending"),
    "resolved": ("released", "Resolved", "released"),
}
ALERT_TONES = {"critical": "stop", "warning": "warn"}
GOOD = {Slo.Kind.AVAILABILITY: "requests served well", Slo.Kind.RATIO: "events good"}
LIBRARY = "vendor/uplot/uPlot.iife.min.js"
LIBRARY_STYLE = "vendor/uplot/uPlot.min.css"
MIN_DIGITS = 1000


@register.simple_tag
def slo_state(condition: str) -> SafeString:
    return state_badge(*CONDITIONS.get(condition, CONDITIONS["unknown"]))


@register.simple_tag
def rule_state(state: str) -> SafeString:
    return state_badge(*RULE_STATES.get(state, RULE_STATES["unknown"]))


@register.simple_tag
def alert_state(state: str) -> SafeString:
    return state_badge(*ALERT_STATES.get(state, ALERT_STATES["open"]))


@register.simple_tag
def rule_severity(severity: str) -> SafeString:
    icon_name, word = SEVERITIES.get(severity, ("info", severity))
    return format_html('<span class="calls calls--{}">{}{}</span>', severity, icon(icon_name), word)


@register.simple_tag
def mark_kind(mark: Annotation) -> SafeString:
    """Return an annotation's kind as HTML: icon, name, and the color of its mark on the plot."""
    icon_name, word = MARKS[mark.kind]
    return format_html(
        '<span class="mark mark--{}"><i class="mark__swatch"></i>{}<span>{}</span></span>',
        "ticket" if mark.label == "ticket" else mark.kind,
        icon(icon_name),
        word,
    )


@register.filter
def condition_word(condition: str) -> str:
    return CONDITIONS.get(condition, CONDITIONS["unknown"])[1].lower()


@register.filter
def lasting_words(state: str) -> str:
    return LASTING.get(state, LASTING["unknown"])


@register.filter
def times(rate: float | None) -> str:
    """Format a burn rate as a multiple of the allowed rate, with a dash if it is unknown."""
    return "–" if rate is None else format_burn_rate(rate)


@register.filter
def share(value: float | None) -> str:
    """Format a share in percent, rounded toward zero: `84 %`, `3.4 %`, `−12 %`."""
    if value is None:
        return "–"
    percent = value * 100
    sign = "−" if percent < 0 else ""
    size = abs(percent)
    if size and size < 0.01:
        return f"{sign}< 0.01 %" if sign else "< 0.01 %"
    digits = 2 if size < 1 else 1 if size < 10 else 0
    # 99.96 % is not 100 %: never show more budget than there is.
    truncated = int(size * 10**digits + 1e-9) / 10**digits
    return f"{sign}{truncated:,.10g} %"


@register.filter
def milliseconds(value: float) -> str:
    return f"{value:,.10g}"


@register.filter
def good_events(slo: Slo) -> str:
    """Return a phrase for what is good: `requests served well`, `minutes in which …`."""
    if slo.slice_target is not None:
        share = documents.format_percent(slo.slice_target)
        return f"minutes in which at least {share} of events are good"
    if slo.kind == Slo.Kind.LATENCY and slo.threshold_ms is not None:
        return f"events within {milliseconds(slo.threshold_ms)} ms"
    return GOOD.get(Slo.Kind(slo.kind), slo.kind)


@register.filter
def counted_unit(slo: Slo) -> str:
    """Return the plural of what the SLO counts: `events` or `minutes`."""
    return "events" if slo.slice_target is None else "minutes"


@register.filter
def events(count: float | None) -> str:
    """Format a count of events, which may be a fraction: `12,000`, `0.5`."""
    if count is None:
        return "–"
    return f"{count:,.0f}" if float(count).is_integer() or count >= MIN_DIGITS else f"{count:.3g}"


@register.filter
def window_long(window: str) -> str:
    return durations.format_readable(timedelta(minutes=window_minutes(window)))


@register.filter
def whole_minutes(until: datetime, since: datetime) -> str:
    """Format the time from `since` to `until` in whole minutes."""
    minutes = max(0, (until - since) // timedelta(minutes=1))
    lasted = durations.format_readable(timedelta(minutes=minutes))
    return lasted if minutes else "less than a minute"


@register.filter
def spent_tone(remaining: float | None) -> str:
    """Return the CSS class suffix for the budget left (a share): unknown, gone, low or calm."""
    if remaining is None:
        return "unknown"
    return "gone" if remaining <= 0 else "low" if remaining < 0.25 else "calm"


@register.simple_tag
def plot_library() -> dict[str, str]:
    """Return the URLs of the plot library, `script` and `style`; empty if it is not installed."""
    try:
        return {
            "script": staticfiles_storage.url(LIBRARY),
            "style": staticfiles_storage.url(LIBRARY_STYLE),
        }
    except ValueError:
        return {}


@register.simple_tag
def open_alerts() -> dict[str, int | str | None]:
    """Return the number of open alerts as `total`, and the CSS `tone` of the worst one.

    The number is None on a database error.
    """
    try:
        counts = Alert.objects.count_open()
    except (DatabaseError, InterfaceError):
        return {"total": None, "tone": ""}
    return {"total": counts.total, "tone": ALERT_TONES.get(counts.worst, "")}
