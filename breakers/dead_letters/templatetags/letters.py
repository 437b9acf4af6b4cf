"""Template tags and filters of dead letter pages."""

from collections.abc import Sequence

from django import template
from django.db import DatabaseError, InterfaceError
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from breakers.dead_letters.bulk import eligibility, results
from breakers.dead_letters.letters import ids, redaction
from breakers.dead_letters.models import Departure, LetterStream
from breakers.dead_letters.monitoring.stream_state import ALARM_DEPTH, SAMPLE_CADENCE
from breakers.dead_letters.views import payload
from breakers.templatetags.breakers import render_state
from controlplane.core.freshness import assess_freshness

register = template.Library()

STEADY = 0.05  # Growth in letters per minute below which a stream counts as steady.
DAYS_HEIGHT, DAY_WIDTH, DAY_STEP = 24, 7, 9

# state → icon, word, tone
STREAM_STATES = {
    "alarm": ("critical", "Backlog", "overdue"),
    "deep": ("warning", "Deep", "engaged"),
    "growing": ("warning", "Growing", "pending"),
    "waiting": ("letters", "Waiting", "quiet"),
    "empty": ("check", "Empty", "released"),
    "gone": ("close", "Gone", "quiet"),
}
# action → icon, word, tone, once it is done
ACTIONS = {
    "retry": ("undo", "Retried", "ramping"),
    "discard": ("bin", "Discarded", "quiet"),
    "purge": ("archive", "Purged", "quiet"),
    "age": ("clock", "Too old", "quiet"),
    "length": ("archive", "Too many", "quiet"),
}
HISTORY_ICONS = {
    "failed": "warning",
    "retried": "undo",
    "restored": "check",
    "leaving": "clock",
    "gone": "info",
}
DOES = {"retry": "Retry", "discard": "Discard", "purge": "Purge"}
# state → icon, word, tone, instead of those of the action
DEPARTURE_STATES = {
    "intended": ("clock", "In progress", "pending"),
    "gone": ("info", "Already gone", "quiet"),
    "restoring": ("clock", "Being restored", "pending"),
    "restored": ("check", "Restored", "released"),
}


for _name, _filter in (
    ("stream_url", lambda stream: stream.page_url),
    ("stream_condition", lambda stream: STREAM_STATES[state_of(stream, None)][1].lower()),
    ("is_deep", lambda stream: stream.depth > ALARM_DEPTH),
    ("depth_tone", lambda stream: "failed" if stream.depth > ALARM_DEPTH else "holding"),
    (
        "depth_freshness",
        lambda stream, now: assess_freshness(stream.sampled_at, SAMPLE_CADENCE, now),
    ),
    ("entry_id", lambda position: ids.to_entry_id(position) if position else ""),
    ("added_at", lambda position: ids.added_at(position) if position else None),
    ("why_not", lambda why: eligibility.SKIP_WORDS.get(why, str(why).replace("_", " "))),
    ("history_icon", lambda kind: HISTORY_ICONS.get(kind, "archive")),
    ("action_word", lambda action: ACTIONS.get(action, ("info", action, ""))[1]),
    ("action_does", lambda action: DOES.get(action, action.capitalize())),
):
    register.filter(_name, _filter)


@register.simple_tag
def alarmed_streams() -> int | None:
    """Return the number of streams with an alarm; None if the database is unavailable."""
    try:
        found = LetterStream.objects.filter(alarmed_at__isnull=False, gone_at__isnull=True)
        return found.count()
    except (DatabaseError, InterfaceError):
        return None


@register.simple_tag
def letter_stream_state(stream: LetterStream, growth: float | None = None) -> SafeString:
    """Render a stream's state as icon, word and color."""
    return render_state(*STREAM_STATES[state_of(stream, growth)])


@register.simple_tag
def departure_state(departure: Departure) -> SafeString:
    """Render the state of a removal as icon, word and color."""
    if departure.failed_again_at is not None:
        return render_state("warning", "Failed again", "overdue")
    look = DEPARTURE_STATES.get(departure.state) or ACTIONS.get(departure.action)
    return render_state(*(look or ("info", departure.action, "quiet")))


register.filter("replay_result", results.describe_result)
register.simple_tag(LetterStream.letter_url, name="letter_url")


@register.filter
def growth_words(growth: float | None) -> str:
    """Return the growth of a stream as `+12 a minute`, `−3 a minute` or `steady`."""
    if growth is None:
        return "not known yet"
    if abs(growth) < STEADY:
        return "steady"
    sign = "+" if growth > 0 else "−"
    size = abs(growth)
    return f"{sign}{size:.1f} a minute" if size < 10 else f"{sign}{size:,.0f} a minute"


@register.filter
def byte_size(size: int | None) -> str:
    """Return a size as `812 B`, `4.9 KB` or `5.0 MB`."""
    value = float(size or 0)
    for unit in ("B", "KB", "MB"):
        if value < 1000 or unit == "MB":
            return f"{value:,.0f} {unit}" if unit == "B" else f"{value:,.1f} {unit}"
        value /= 1000
    return ""


@register.filter
def redacted_error(error: str) -> str:
    """Return an error text with secrets redacted and invisible characters escaped."""
    redacted = redaction.configured_redaction().redact_text((error or "").encode())
    return payload.escape_unseen(redacted.decode(errors="replace"))


@register.simple_tag
def days_drawn(counts: Sequence[int]) -> SafeString:
    """Draw a bar chart of counts by day; the last bar is today."""
    most = max(counts, default=0) or 1
    heights = [max(2.0, DAYS_HEIGHT * count / most) if count else 1.0 for count in counts]
    columns = format_html_join(
        "",
        '<rect class="{}" x="{}" y="{}" width="{}" height="{}" rx="1"></rect>',
        (
            (
                "days__day" if count else "days__none",
                DAY_STEP * place,
                f"{DAYS_HEIGHT - height:.1f}",
                DAY_WIDTH,
                f"{height:.1f}",
            )
            for place, (count, height) in enumerate(zip(counts, heights, strict=True))
        ),
    )
    width = DAY_STEP * len(counts) - (DAY_STEP - DAY_WIDTH)
    return format_html(
        '<svg class="days" viewBox="0 0 {0} {1}" width="{0}" height="{1}" role="img" '
        'aria-label="By day: {2}">{3}</svg>',
        width,
        DAYS_HEIGHT,
        ", ".join(f"{count:,}" for count in counts),
        columns,
    )


def state_of(stream: LetterStream, growth: float | None) -> str:
    if stream.gone_at is not None:
        return "gone"
    if not stream.depth:
        return "empty"
    if stream.alarmed_at is not None:
        return "alarm"
    if stream.depth > ALARM_DEPTH:
        return "deep"
    return "growing" if growth is not None and growth >= 1 else "waiting"
