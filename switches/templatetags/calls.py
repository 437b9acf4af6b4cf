"""Template tags of call plots: their numbers in words, and the sparkline of a switch's row."""

from datetime import datetime

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from controlplane.core.instances.check_series import CheckSeries
from controlplane.core.templatetags.screen import moment, on_axis
from switches import call_plot

register = template.Library()

SPARK_HEIGHT = 20
UNITS = {"h": "h", "d": "days"}

register.filter("from_unix", call_plot.from_unix)


@register.filter
def range_words(name: str) -> str:
    """Format a range's name with its unit: `6 h`, `7 days`."""
    return f"{name[:-1]} {UNITS[name[-1]]}"


@register.filter
def tick_words(at: datetime, range_name: str) -> str:
    """Format a time below a plot: `11:11`, with the day in ranges of several days."""
    return moment(at) if range_name.endswith("d") else on_axis(at)


@register.filter
def rate_words(rate: float) -> str:
    """Format the top of an axis: `500/min`."""
    return f"{rate:,.12g}/min"


@register.filter
def blocked_share(series: CheckSeries) -> str:
    """Format the share of blocked calls; only exactly none and all are `0 %` and `100 %`."""
    if not series.total:
        return "no calls"
    share = 100 * series.blocked / series.total
    if 0 < share < 1:
        return "< 1 %"
    if 99 < share < 100:
        return "> 99 %"
    return f"{share:.0f} %"


@register.filter
def calls_words(series: CheckSeries) -> str:
    """Format a series as text: `1,240 of 5,000 calls blocked`."""
    if series.is_empty:
        return "no calls reported"
    return f"{series.blocked:,} of {series.total:,} call{'' if series.total == 1 else 's'} blocked"


@register.simple_tag
def call_spark(series: CheckSeries | None, is_current: bool = True) -> SafeString:
    """Draw the calls of the last hour as columns: blocked ones below, allowed ones above.

    They are gray if the last report is old.
    """
    if series is None or series.is_empty:
        return format_html('<span class="small quiet">{}</span>', "No calls reported")
    allowed, blocked, gaps = call_plot.spark_paths(series, SPARK_HEIGHT)
    return format_html(
        '<svg class="call-spark{7}" viewBox="0 0 {0} {1}" width="{2}" height="{1}" role="img" '
        'preserveAspectRatio="none" aria-label="{3}">'
        '<path class="calls-plot__allowed" d="{4}"></path>'
        '<path class="calls-plot__blocked" d="{5}"></path>'
        '<path class="calls-plot__gap" d="{6}"></path></svg>',
        len(series.buckets),
        SPARK_HEIGHT,
        3 * len(series.buckets),
        f"Last hour: {calls_words(series)}",
        allowed,
        blocked,
        gaps,
        "" if is_current else " call-spark--stale",
    )
