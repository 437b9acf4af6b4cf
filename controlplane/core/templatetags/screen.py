"""Template tags for recurring elements: icons, times, countdowns, actors.

Times are shown in the person's time zone, with UTC in the tooltip and `datetime`.
`static/js/times.js` switches to UTC for people who prefer it, and `static/js/clock.js` updates
countdowns and ages in the same format as here.
"""

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache

from django import template
from django.http import HttpRequest
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from controlplane.core import durations
from controlplane.core.actors import SHELL, label_of
from controlplane.core.canonical import timestamp
from controlplane.core.http.context import describe_installation

register = template.Library()

SOON = timedelta(hours=1)
ACTOR_ICONS = {"user": "person", "token": "token", "slack": "slack", "system": "system"}


@register.filter
def any_of(names: Sequence[str]) -> str:
    """Return names as alternatives: `anna`, `anna or olga`, `anna, kim or olga`."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


@register.simple_tag
@cache
def icon(name: str) -> SafeString:
    """Render an icon of the sprite, hidden from screen readers: there is always a word beside it.

    Cached, as a page has about fifty.
    """
    return format_html(
        '<svg class="icon" aria-hidden="true" focusable="false"><use href="{}#{}"></use></svg>',
        static("icons.svg"),
        name,
    )


@register.inclusion_tag("_environment.html")
def environment() -> dict[str, object]:
    """Provide the environment bar; also for error pages, which are rendered without a request."""
    return describe_installation(HttpRequest())


@register.filter
def moment(at: datetime | None) -> str:
    """Return `21 Nov 11:11` in the person's time zone, with the year unless it is this one."""
    if at is None:
        return ""
    this_year = timezone.localtime(at).year == timezone.localtime(timezone.now()).year
    return _told(at, "%-d %b %H:%M" if this_year else "%-d %b %Y %H:%M")


@register.filter
def exactly(at: datetime | None) -> str:
    """Format a time to the second, with the zone's name: `21 Nov 2026 11:11:09 KST`."""
    if at is None:
        return ""
    return _told(at, "%-d %b %Y %H:%M:%S %Z")


@register.filter
def at_second(at: datetime) -> str:
    """Return `11:11:09` in the person's time zone, preceded by the day unless it is today."""
    today = timezone.localtime(at).date() == timezone.localtime(timezone.now()).date()
    return _told(at, "%H:%M:%S" if today else "%-d %b %H:%M:%S")


@register.filter
def at_minute(at: datetime) -> str:
    """Return `11:11` in the person's time zone, preceded by the day unless it is today."""
    today = timezone.localtime(at).date() == timezone.localtime(timezone.now()).date()
    return _told(at, "%H:%M" if today else "%-d %b %H:%M")


@register.filter
def on_axis(at: datetime) -> str:
    """Return `11:11` for an axis that ends now and has no room for the day."""
    return _told(at, "%H:%M", utc="%H:%M")


def _told(at: datetime, form: str, utc: str = "") -> SafeString:
    """Format a time in the person's zone; the script shows `data-utc` to people who prefer UTC.

    `data-utc` includes the day, unless `utc` gives another format: the day may differ in UTC.
    """
    utc = utc or (form if form.startswith("%-d") else f"%-d %b {form}")
    return format_html(
        '<time datetime="{}" title="{}" data-utc="{}">{}</time>',
        timestamp(at),
        told_twice(at),
        f"{at.astimezone(UTC):{utc.removesuffix(' %Z')} UTC}",
        f"{timezone.localtime(at):{form}}",
    )


@register.filter
def web_address(text: str) -> str:
    """Return a link's target if it is a web address or a path of this site; else an empty text.

    Stored links are checked again here, whatever validated them earlier.
    """
    own = text.startswith("/") and not text.startswith("//")
    return text if own or text.startswith(("http://", "https://")) else ""


@register.filter
def parsed(text: str) -> datetime:
    """Parse a canonical timestamp."""
    return datetime.fromisoformat(text)


@register.filter
def lasts(until: datetime, since: datetime) -> str:
    """Format the time from `since` to `until` in at most two units."""
    return durations.readable(until - since)


@register.filter
def number(value: int) -> str:
    """Return a count with thousands separators: `12,000`."""
    return f"{value:,}"


@register.filter
def percent(share: Decimal) -> str:
    """Format a share without trailing zeros: `12.5 %`, `0.07 %`, never rounded."""
    return f"{share.normalize():f} %"


@register.filter
def seconds_left(until: datetime, now: datetime) -> str:
    return f"{max(0, int((until - now).total_seconds()))} s"


@register.filter
def in_utc(at: datetime) -> str:
    return f"{at.astimezone(UTC):%-d %b %H:%M} UTC"


def told_twice(at: datetime) -> str:
    """Local time and UTC, or UTC alone where they are the same."""
    local, utc = timezone.localtime(at), at.astimezone(UTC)
    told = f"{utc:%Y-%m-%d %H:%M:%S} UTC"
    if not local.utcoffset():
        return told
    return f"{local:%Y-%m-%d %H:%M:%S %Z} · {told}"


@register.filter
def epoch(at: datetime) -> int:
    """Milliseconds since 1970, as scripts count."""
    return int(at.timestamp() * 1000)


@register.simple_tag
def ago(at: datetime, now: datetime) -> SafeString:
    """Format the time since `at`; the clock script keeps it current."""
    return format_html('<span data-since="{}">{} ago</span>', epoch(at), age(now - at))


@register.simple_tag
def countdown(until: datetime, now: datetime) -> SafeString:
    """Return the ticking time left until `until`, or the time since then."""
    left = until - now
    tone = "late" if left <= timedelta() else "soon" if left <= SOON else "calm"
    return format_html(
        '<span class="countdown countdown--{} digits" role="timer" data-until="{}">{}</span>',
        tone,
        epoch(until),
        time_left(left),
    )


@register.simple_tag
def label(kind: str, name: str) -> str:
    """Return the label of an actor as text."""
    return label_of(kind, name)


@register.simple_tag
def who(kind: str, name: str = "") -> SafeString:
    """Show an actor: `who "user" "kim"`, or `who "user:kim"`."""
    if not name and kind.startswith(SHELL):
        kind, name = "system", kind
    if not name:
        kind, _, name = kind.partition(":")
    return format_html(
        '<span class="who">{}<span class="unseen">{} </span><bdi>{}</bdi></span>',
        icon(ACTOR_ICONS.get(kind, "system")),
        kind,
        name,
    )


def time_left(left: timedelta) -> str:
    """Return a duration as `6 d 23 h`, `23:59:41` or `59:41`; below zero with `over` appended."""
    over = left <= timedelta()
    # Rounded up while it runs, down once it is over: it never claims a second that is gone.
    seconds = int(-left.total_seconds()) if over else math.ceil(left.total_seconds())
    text = _clock(seconds)
    return f"{text} over" if over else text


def age(elapsed: timedelta) -> str:
    """Format an age in one unit: `12 s`, `4 min`, `3 h`, `2 d`; the exact time is beside it."""
    seconds = max(0, int(elapsed.total_seconds()))
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def _clock(seconds: int) -> str:
    hours, rest = divmod(seconds, 3600)
    if hours >= 48:
        return f"{hours // 24} d {hours % 24} h"
    minutes, seconds = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
