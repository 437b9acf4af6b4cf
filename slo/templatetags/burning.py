"""Small drawings of SLOs: what is left of a budget, a day of burn rates, a rate and its limit.

They are silent for screen readers or carry one sentence: the figures stand beside them.
"""

import math
from datetime import timedelta

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from controlplane.core import durations
from slo.dashboard.sparklines import PARTS, Sparkline

from .slos import spent_tone, times

register = template.Library()

STEP, HEIGHT, WIDTH = 3, 30, 2
MAX_RATE = 50.0
"""What a column shows at most: a day in which half of all failed dwarfs no other day of its row."""
METER_WIDTH = 100


@register.simple_tag
def budget_bar(remaining: float | None) -> SafeString:
    """What is left of a budget: what is spent is hollow. Silent."""
    full = 0.0 if remaining is None else max(0.0, min(1.0, remaining)) * METER_WIDTH
    ticks = format_html_join(
        "",
        '<rect class="budget__tick" x="{}" width="0.5" height="8"></rect>',
        ((METER_WIDTH * quarter / 4 - 0.25,) for quarter in (1, 2, 3)),
    )
    return format_html(
        '<svg class="budget budget--{}" viewBox="0 0 {} 8" preserveAspectRatio="none" '
        'aria-hidden="true" focusable="false"><rect class="budget__ground" width="{}" height="8">'
        '</rect><rect class="budget__left" width="{}" height="8"></rect>{}</svg>',
        spent_tone(remaining),
        METER_WIDTH,
        METER_WIDTH,
        _plain(full),
        ticks,
    )


@register.simple_tag
def burn_spark(spark: Sparkline) -> SafeString:
    """A column for each half hour of the last day, by how fast it burned: taller and in colour
    where it was faster than the budget allows, a dot where nothing is known."""
    width = STEP * PARTS - (STEP - WIDTH)
    drawn: dict[str, list[str]] = {}
    for place, rate in enumerate(spark.rates):
        look, height = _column(rate, spark.limit)
        drawn.setdefault(look, []).append(f"M{STEP * place + WIDTH // 2} {HEIGHT}v-{height}")
    columns = format_html_join(
        "",
        '<path class="burn__{}" d="{}"></path>',
        ((look, "".join(drawn[look])) for look in sorted(drawn)),
    )
    even = HEIGHT - _height(1.0)
    return format_html(
        '<svg class="burn" viewBox="0 0 {0} {1}" width="{0}" height="{1}" role="img" '
        'aria-label="{2}"><path class="burn__even" d="M0 {3}H{0}"></path>{4}</svg>',
        width,
        HEIGHT,
        _said(spark),
        _plain(even),
        columns,
    )


@register.simple_tag
def rate_meter(rate: float | None, limit: float) -> SafeString:
    """How near a burn rate is to the limit of a rule, which is the mark. Silent."""
    most = max(limit * 1.5, min(rate or 0.0, limit * 3))
    full = METER_WIDTH * min(1.0, (rate or 0.0) / most)
    tone = "unknown" if rate is None else "above" if rate > limit else "below"
    return format_html(
        '<svg class="rate rate--{}" viewBox="0 0 {} 8" preserveAspectRatio="none" '
        'aria-hidden="true" focusable="false"><rect class="rate__ground" y="2" width="{}" '
        'height="4"></rect><rect class="rate__now" y="2" width="{}" height="4"></rect>'
        '<rect class="rate__limit" x="{}" width="1" height="8"></rect></svg>',
        tone,
        METER_WIDTH,
        METER_WIDTH,
        _plain(full),
        _plain(METER_WIDTH * limit / most - 0.5),
    )


def _column(rate: float | None, limit: float | None) -> tuple[str, str]:
    if rate is None:
        return "none", "1.5"
    look = "grave" if limit is not None and rate > limit else "fast" if rate > 1 else "calm"
    return look, _plain(max(1.5, _height(rate)))


def _height(rate: float) -> float:
    """Between a trickle and an outage lie orders of magnitude, so it is logarithmic."""
    return HEIGHT * math.log1p(min(max(rate, 0.0), MAX_RATE)) / math.log1p(MAX_RATE)


def _said(spark: Sparkline) -> str:
    if spark.most is None:
        return "Nothing is known of the last 24 hours"
    blind = spark.unknown_minutes
    unknown = f"; nothing known for {durations.readable(timedelta(minutes=blind))}" if blind else ""
    return f"The last 24 hours: at most {times(spark.most)}{unknown}"


def _plain(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")
