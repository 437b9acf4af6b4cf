"""Small SVG drawings of SLOs: the budget left, a day of burn rates, a burn rate and its limit."""

import math
from datetime import timedelta

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from controlplane.core import durations
from slo.dashboard.board import PARTS, Sparkline

from .slos import spent_tone, times

register = template.Library()

STEP, HEIGHT, WIDTH = 3, 30, 2
MAX_RATE = 50.0
"""Burn rate at which a column reaches its full height."""
METER_WIDTH = 100


@register.simple_tag
def budget_bar(remaining: float | None) -> SafeString:
    """Draw a bar that is filled by the share of the budget that is left."""
    full = 0.0 if remaining is None else max(0.0, min(1.0, remaining)) * METER_WIDTH
    ticks = format_html_join(
        "",
        '<rect class="budget__tick" x="{}" width="0.5" height="8"></rect>',
        ((METER_WIDTH * quarter / 4 - 0.25,) for quarter in (1, 2, 3)),
    )
    return format_html(
        '<svg class="budget budget--{0}" viewBox="0 0 {1} 8" preserveAspectRatio="none" '
        'aria-hidden="true" focusable="false"><rect class="budget__ground" width="{1}" height="8">'
        '</rect><rect class="budget__left" width="{2}" height="8"></rect>{3}</svg>',
        spent_tone(remaining),
        METER_WIDTH,
        _format_number(full),
        ticks,
    )


@register.simple_tag
def burn_spark(spark: Sparkline) -> SafeString:
    """Draw a column for the burn rate in each half hour of the last day, and a dot where unknown.

    The color tells whether the rate is up to 1, above 1, or above the limit of paging rules.
    """
    width = STEP * PARTS - (STEP - WIDTH)
    paths: dict[str, list[str]] = {}
    for place, rate in enumerate(spark.rates):
        look, height = "none", 1.5
        if rate is not None:
            is_grave = spark.limit is not None and rate > spark.limit
            look = "grave" if is_grave else "fast" if rate > 1 else "calm"
            height = max(1.5, _rate_height(rate))
        start = f"M{STEP * place + WIDTH // 2} {HEIGHT}"
        paths.setdefault(look, []).append(f"{start}v-{_format_number(height)}")
    columns = format_html_join(
        "",
        '<path class="burn__{}" d="{}"></path>',
        ((look, "".join(paths[look])) for look in sorted(paths)),
    )
    label = "No data in the last 24 hours"
    if spark.most is not None:
        label = f"The last 24 hours: at most {times(spark.most)}"
        if spark.unknown_minutes:
            unknown = durations.format_readable(timedelta(minutes=spark.unknown_minutes))
            label += f"; no data for {unknown}"
    return format_html(
        '<svg class="burn" viewBox="0 0 {0} {1}" width="{0}" height="{1}" role="img" '
        'aria-label="{2}"><path class="burn__even" d="M0 {3}H{0}"></path>{4}</svg>',
        width,
        HEIGHT,
        label,
        _format_number(HEIGHT - _rate_height(1.0)),
        columns,
    )


@register.simple_tag
def rate_meter(rate: float | None, limit: float) -> SafeString:
    """Draw a burn rate as a horizontal bar, with a mark at the limit of a rule."""
    most = max(limit * 1.5, min(rate or 0.0, limit * 3))
    full = METER_WIDTH * min(1.0, (rate or 0.0) / most)
    tone = "unknown" if rate is None else "above" if rate > limit else "below"
    return format_html(
        '<svg class="rate rate--{0}" viewBox="0 0 {1} 8" preserveAspectRatio="none" '
        'aria-hidden="true" focusable="false"><rect class="rate__ground" y="2" width="{1}" '
        'height="4"></rect><rect class="rate__now" y="2" width="{2}" height="4"></rect>'
        '<rect class="rate__limit" x="{3}" width="1" height="8"></rect></svg>',
        tone,
        METER_WIDTH,
        _format_number(full),
        _format_number(METER_WIDTH * limit / most - 0.5),
    )


def _rate_height(rate: float) -> float:
    """Return the height of a column for a burn rate, on a logarithmic scale."""
    return HEIGHT * math.log1p(min(max(rate, 0.0), MAX_RATE)) / math.log1p(MAX_RATE)


def _format_number(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")
