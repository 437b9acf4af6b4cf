"""Template tags that draw breakers as small SVG images.

Screen readers get one sentence or nothing, as the figures are also on the page as text.
"""

from collections.abc import Sequence
from datetime import timedelta
from functools import cache, lru_cache

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from breakers.states.dependency_status import DependencyStatus
from breakers.states.history import Band, FailureSpark
from breakers.templatetags.breakers import STATES, ratio
from controlplane.core import durations

register = template.Library()

SPARK_WIDTH, SPARK_HEIGHT = 96, 26
STRIP_HEIGHT = 28


@register.simple_tag
@cache
def criticality(name: str) -> SafeString:
    """Draw the criticality: one to four bars and the word."""
    level = {"critical": 4, "high": 3, "medium": 2, "low": 1}.get(name, 0)
    bars = format_html_join(
        "",
        '<rect class="{}" x="{}" y="{}" width="2.6" height="{}" rx="0.6"></rect>',
        (
            ("is-on" if place <= level else "is-off", 4 * (place - 1), 12 - 3 * place, 3 * place)
            for place in range(1, 5)
        ),
    )
    return format_html(
        '<span class="criticality criticality--{}"><svg class="criticality__bars" '
        'viewBox="0 0 16 12" width="16" height="12" aria-hidden="true" focusable="false">'
        "{}</svg>{}</span>",
        name,
        bars,
        name,
    )


@register.simple_tag
def instances_bar(status: DependencyStatus) -> SafeString:
    """Draw a bar of the instances by state, the worst first, stale ones last."""
    parts = [
        *((state, status.counts[state]) for state in ("open", "half_open", "closed")),
        ("stale", status.stale),
    ]
    whole = sum(count for _, count in parts) or 1
    drawn, left = [], 0.0
    for name, count in parts:
        width = 100 * count / whole
        if count:
            drawn.append((name, _format_number(left), _format_number(max(width, 2.5))))
        left += width
    rects = format_html_join(
        "",
        '<rect class="shares__part shares__part--{}" x="{}" width="{}" height="6"></rect>',
        drawn,
    )
    return format_html(
        '<svg class="shares" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true" '
        'focusable="false">{}</svg>',
        rects,
    )


@register.simple_tag
def sparkline(spark: FailureSpark) -> SafeString:
    """Draw the failure ratio of the last hour, and bands where breakers were not closed."""
    if spark.is_empty:
        return format_html('<span class="small quiet">{}</span>', "no calls")
    step = SPARK_WIDTH / spark.length
    numbers = (
        (band.state, *map(_format_number, (band.start * step, band.length * step, SPARK_HEIGHT)))
        for band in spark.troubled
    )
    bands = format_html_join(
        "",
        '<rect class="spark__band spark__band--{}" x="{}" y="0" width="{}" height="{}"></rect>',
        numbers,
    )
    worst = "no calls" if spark.worst_share is None else f"at most {ratio(spark.worst_share)}"
    opened = sum(band.length for band in spark.troubled if band.state == "open")
    label = f"Failures over the last hour: {worst}" + (f"; open for {opened} min" if opened else "")
    return format_html(
        '<svg class="spark" viewBox="0 0 {0} {1}" width="{0}" height="{1}" role="img" '
        'aria-label="{2}">{3}<path class="spark__ground" d="M0 {4}H{0}"></path>'
        '<path class="spark__line" d="{5}"></path></svg>',
        SPARK_WIDTH,
        SPARK_HEIGHT,
        label,
        bands,
        SPARK_HEIGHT - 1,
        " ".join(_piece_path(piece, step) for piece in spark.pieces),
    )


@register.simple_tag
def state_strip(bands: Sequence[Band], label: str) -> SafeString:
    """Draw the breaker state over time as a strip of bands, one unit wide per minute."""
    length = bands[-1].end if bands else 1
    drawn = format_html_join(
        "",
        '<rect class="strip__band strip__band--{}" x="{}" y="{}" width="{}" height="{}">'
        "<title>{}</title></rect>",
        (_band_rectangle(band) for band in bands),
    )
    return format_html(
        '<svg class="strip" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" '
        'aria-label="{}">{}</svg>',
        length,
        STRIP_HEIGHT,
        label,
        drawn,
    )


def _band_rectangle(band: Band) -> tuple[str, int, int, int, int, str]:
    """Return state, x, y, width, height and title of a band; worse states are taller."""
    height = {"open": STRIP_HEIGHT, "half_open": 20, "closed": 9, "unknown": 3}[band.state]
    lasted = durations.format_readable(timedelta(minutes=band.length))
    title = f"{STATES[band.state][1]} for {lasted}"
    return band.state, band.start, STRIP_HEIGHT - height, band.length, height, title


def _piece_path(piece: Sequence[tuple[int, float]], step: float) -> str:
    room = SPARK_HEIGHT - 4
    points = [
        f"{_format_number((minute + 0.5) * step)} "
        f"{_format_number(2 + room * (1 - min(share, 1.0)))}"
        for minute, share in piece
    ]
    return f"M{points[0]}h.01" if len(points) == 1 else "M" + "L".join(points)


@lru_cache(maxsize=4096)
def _format_number(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")
