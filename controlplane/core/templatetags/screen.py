"""Template tags for icons, times, countdowns and actors.

Times are shown in the user's time zone, with UTC in the tooltip and `datetime`.
`static/js/time_zone.js` switches to UTC for users who prefer it, and `static/js/clock.js` updates
countdowns and ages in the formats of this module.
"""

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache, lru_cache
from typing import Any

from django import template
from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from controlplane.core import durations
from controlplane.core.actors import SHELL, label_of
from controlplane.core.authority import TeamName, Teams
from controlplane.core.canonical import timestamp
from controlplane.core.freshness import Freshness
from controlplane.core.http.context import describe_installation

register = template.Library()

SOON = timedelta(minutes=10)
# Icon and tone of a severity; icon of a risk.
SEVERITIES = {"critical": ("warning", "engaged"), "warning": ("warning", "pending")}
RISK_ICONS = {"critical": "critical", "high": "warning"}
ACTOR_ICONS = {"user": "person", "token": "token", "slack": "slack", "system": "system"}


@register.filter
def any_of(names: Sequence[str]) -> str:
    """Join names as alternatives: `anna`, `anna or olga`, `anna, kim or olga`."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


@register.simple_tag
@cache  # A page has about fifty icons.
def icon(name: str) -> SafeString:
    """Render an icon of the sprite, hidden from screen readers because a word accompanies it."""
    return format_html(
        '<svg class="icon" aria-hidden="true" focusable="false"><use href="{}#{}"></use></svg>',
        static("icons.svg"),
        name,
    )


@register.simple_tag
def state_badge(symbol: str, word: str, tone: str) -> SafeString:
    """Render a state as icon and word in a color; `tone` is the suffix of a CSS class."""
    return format_html(
        '<span class="state state--{}">{}<span>{}</span></span>', tone, icon(symbol), word
    )


@register.simple_tag
def severity_badge(severity: str) -> SafeString:
    symbol, tone = SEVERITIES.get(severity, ("info", "quiet"))
    return state_badge(symbol, severity, tone)


@register.simple_tag
def risk_badge(risk: str) -> SafeString:
    """Render an approval's risk: low, medium, high or critical."""
    return format_html(
        '<span class="state risk--{}">{}<span>{} risk</span></span>',
        risk,
        icon(RISK_ICONS.get(risk, "info")),
        risk.capitalize(),
    )


@register.simple_tag(takes_context=True)
def form_action(context: dict[str, Any], path: str) -> SafeString:
    """Return the attributes of a form that posts to `path`; in a dialog, also those of htmx."""
    if not context.get("dialog"):
        return format_html('action="{}"', path)
    return format_html(
        'action="{0}" hx-post="{0}" hx-target="#dialog-body" hx-disabled-elt="find .button--big"',
        path,
    )


@register.inclusion_tag("_environment.html")
def environment() -> dict[str, object]:
    """Return the template context of the bar that names the environment; needs no request."""
    return describe_installation(HttpRequest())


@register.filter
def moment(at: datetime | None) -> str:
    """Format a time as `21 Nov 11:11` in the user's zone, with the year unless it is current."""
    if at is None:
        return ""
    local = timezone.localtime(at)
    this_year = local.year == timezone.localtime(timezone.now()).year
    return _time_element(local, "%-d %b %H:%M" if this_year else "%-d %b %Y %H:%M")


@register.filter
def exactly(at: datetime | None) -> str:
    """Format a time to the second, with the zone's name: `21 Nov 2026 11:11:09 KST`."""
    if at is None:
        return ""
    return _time_element(at, "%-d %b %Y %H:%M:%S %Z")


@register.filter
def at_second(at: datetime) -> str:
    """Format a time as `11:11:09` in the user's zone, after the day unless that is today."""
    today = timezone.localtime(at).date() == timezone.localtime(timezone.now()).date()
    return _time_element(at, "%H:%M:%S" if today else "%-d %b %H:%M:%S")


@register.filter
def at_minute(at: datetime) -> str:
    """Format a time as `11:11` in the user's zone, after the day unless that is today."""
    today = timezone.localtime(at).date() == timezone.localtime(timezone.now()).date()
    return _time_element(at, "%H:%M" if today else "%-d %b %H:%M")


@register.filter
def on_axis(at: datetime) -> str:
    """Format a time as `11:11`, for a chart's axis that ends now and has no room for the day."""
    return _time_element(at, "%H:%M", utc="%H:%M")


def _time_element(at: datetime, time_format: str, utc: str = "") -> SafeString:
    """Return the time as a `<time>` element in the user's zone.

    A script shows the attribute `data-utc` to users who prefer UTC. The attribute includes the day,
    which may differ in UTC, unless `utc` gives another format.
    """
    utc = utc or (time_format if time_format.startswith("%-d") else f"%-d %b {time_format}")
    local = timezone.localtime(at)
    utc_text = f"{at.astimezone(UTC):{utc.removesuffix(' %Z')} UTC}"
    # Tables have hundreds of times. Times need no escaping, and `format_html` is slow.
    return SafeString(
        f'<time datetime="{timestamp(at)}" title="{local_and_utc(local)}" data-utc="{utc_text}">'
        f"{local:{time_format}}</time>"
    )


@register.filter
def web_address(text: str) -> str:
    """Return a link's target if it is a web URL or a local path, else "".

    Stored links are checked again here, whatever validated them before.
    """
    own = text.startswith("/") and not text.startswith("//")
    return text if own or text.startswith(("http://", "https://")) else ""


@register.filter
def parsed(text: str) -> datetime:
    """Convert a canonical timestamp to a time."""
    return datetime.fromisoformat(text)


@register.filter
def lasts(until: datetime, since: datetime) -> str:
    """Format the time from `since` to `until`, in at most two units: `3 d 4 h`."""
    return durations.format_readable(until - since)


@register.filter
def number(value: int) -> str:
    """Format a count with thousands separators: `12,000`."""
    return f"{value:,}"


@register.filter
def percent(share: Decimal) -> str:
    """Format a share without trailing zeros and unrounded: `12.5 %`, `0.07 %`."""
    return f"{share.normalize():f} %"


@register.filter
def seconds_left(until: datetime, now: datetime) -> str:
    return f"{max(0, int((until - now).total_seconds()))} s"


@register.filter
def in_utc(at: datetime) -> str:
    return f"{at.astimezone(UTC):%-d %b %H:%M} UTC"


def local_and_utc(at: datetime) -> str:
    """Return the local time and UTC, or only UTC if they are the same."""
    local, utc = timezone.localtime(at), at.astimezone(UTC)
    utc_text = f"{utc:%Y-%m-%d %H:%M:%S} UTC"
    if not local.utcoffset():
        return utc_text
    return f"{local:%Y-%m-%d %H:%M:%S %Z} · {utc_text}"


@register.filter
def epoch(at: datetime) -> int:
    """Return a time as milliseconds since 1970, the unit of JavaScript's times."""
    return int(at.timestamp() * 1000)


@register.simple_tag
def ago(at: datetime, now: datetime) -> SafeString:
    """Return the age of `at` as an element that the clock script updates."""
    return format_html('<span data-since="{}">{} ago</span>', epoch(at), age(now - at))


@register.simple_tag
def figure_at(freshness: Freshness, text: str = "", since: str = "no update since") -> SafeString:
    """Render a figure with the time at which it was true, in gray if it is stale.

    Without `text`, only that time is rendered. `since` precedes the time of a stale figure.
    """
    if freshness.at is None:
        return format_html('<span class="dated dated--stale">{}</span>', text or "never reported")
    if freshness.is_stale:
        age = format_html('<span class="dated__since">{} {}</span>', since, at_minute(freshness.at))
        return format_html('<span class="dated dated--stale">{} {}</span>', text, age)
    if text:
        when = local_and_utc(freshness.at)
        return format_html('<span class="dated" title="As of {}">{}</span>', when, text)
    return format_html('<span class="dated">as of {}</span>', at_second(freshness.at))


@register.simple_tag
def countdown(until: datetime, now: datetime) -> SafeString:
    """Return the time left until `until`, or passed since, as an element that a script updates."""
    left = until - now
    tone = "late" if left <= timedelta() else "soon" if left <= SOON else "calm"
    return format_html(
        '<span class="countdown countdown--{} digits" role="timer" data-until="{}">{}</span>',
        tone,
        epoch(until),
        time_left(left),
    )


@register.filter
def owner_of(teams: Teams, resource: str) -> TeamName | None:
    """Return the team that owns a resource, for the tag `owner`."""
    return teams.owner_of(resource)


@register.simple_tag
def owner(team: TeamName | None) -> str:
    """Render the team that owns something as a link; nothing without one."""
    return _link_owner(team.slug, team.name) if team else ""


@lru_cache(maxsize=1000)  # A list of switches has few owners.
def _link_owner(slug: str, name: str) -> SafeString:
    return format_html(
        '<a class="tag" href="{}" title="Owning team">{} <span class="visually-hidden">Owned by '
        "</span><bdi>{}</bdi></a>",
        reverse("team_page", args=[slug]),
        icon("team"),
        name,
    )


@register.simple_tag
def label(kind: str, name: str) -> str:
    return label_of(kind, name)


@register.simple_tag
def who(kind: str, name: str = "") -> SafeString:
    """Render an actor, given as `who "user" "kim"` or `who "user:kim"`."""
    if not name and kind.startswith(SHELL):
        kind, name = "system", kind
    if not name:
        kind, _, name = kind.partition(":")
    return format_html(
        '<span class="who">{}<span class="visually-hidden">{} </span><bdi>{}</bdi></span>',
        icon(ACTOR_ICONS.get(kind, "system")),
        kind,
        name,
    )


def time_left(left: timedelta) -> str:
    """Format a duration as `6 d 23 h` or `23:59:41`, with ` over` appended if it has passed."""
    over = left <= timedelta()
    # Rounded up before the end and down after it, so that neither side gains a second.
    seconds = int(-left.total_seconds()) if over else math.ceil(left.total_seconds())
    text = _format_clock(seconds)
    return f"{text} over" if over else text


def age(elapsed: timedelta) -> str:
    """Format an age in one unit: `12 s`, `4 min`, `3 h`, `2 d`."""
    seconds = max(0, int(elapsed.total_seconds()))
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def _format_clock(seconds: int) -> str:
    hours, rest = divmod(seconds, 3600)
    if hours >= 48:
        return f"{hours // 24} d {hours % 24} h"
    minutes, seconds = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
