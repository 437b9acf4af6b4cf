"""Template tags of ramps and jobs: states, verdicts, evidence and progress bars."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from controlplane.core import durations
from controlplane.core.gates import kinds
from controlplane.core.templatetags.screen import epoch, icon, time_left
from switches.ramps import descriptions

register = template.Library()

RAMP_STATES = {
    "pending_approval": ("approvals", "Waits for approval", "pending"),
    "pending": ("clock", "Pending", "pending"),
    "running": ("ramping", "Running", "ramping"),
    "holding": ("hold", "Holding", "pending"),
    "paused": ("pause", "Paused", "pending"),
    "completed": ("released", "Completed", "released"),
    "aborted": ("engaged", "Aborted", "engaged"),
    "cancelled": ("close", "Cancelled", "quiet"),
    "failed": ("critical", "Failed", "overdue"),
}
"""Icon, word and tone by state, for ramps and other jobs."""
STEP_STATES = {
    "pending": ("clock", "Not started", "quiet"),
    "dwelling": ("ramping", "Running", "ramping"),
    "holding": ("hold", "Holding", "pending"),
    "paused": ("pause", "Paused", "pending"),
    "passed": ("check", "Passed", "released"),
    "failed": ("close", "Failed", "engaged"),
    "compensated": ("undo", "Engaged again", "engaged"),
    "never": ("close", "Never started", "quiet"),
}
VERDICTS = {
    "pass": ("check", "Pass", "released"),
    "fail": ("close", "Fail", "engaged"),
    "no_data": ("info", "No data", "pending"),
    "waiting": ("clock", "Waiting", "pending"),
    "": ("clock", "Not checked yet", "quiet"),
}


def render_state(looks: Mapping[str, tuple[str, str, str]], name: str) -> SafeString:
    """Render a state with its icon and word; `looks` maps states to icon, word and tone."""
    shown, word, tone = looks.get(name, ("info", name, "quiet"))
    return format_html(
        '<span class="state state--{}">{}<span>{}</span></span>', tone, icon(shown), word
    )


register.simple_tag(partial(render_state, RAMP_STATES), name="ramp_state")
register.simple_tag(partial(render_state, STEP_STATES), name="step_state")
register.simple_tag(partial(render_state, VERDICTS), name="verdict")
register.filter("for_people", descriptions.describe_outcome)
register.filter("share", descriptions.format_percent)
register.filter("lasting", durations.format_readable)


@register.filter
def error_share(counts: tuple[float, float]) -> str:
    """Format bad events as a share of all, with three digits: `0.25 %`."""
    bad, total = counts
    return f"{100 * bad / total:.3g} %"


@register.filter
def event_count(counts: tuple[float, float]) -> str:
    return f"{round(counts[1]):,}"


@register.filter
def gates_in_words(gates: Any) -> list[str]:
    return [kinds.describe_gate(gate) for gate in gates]


@register.filter
def for_seconds(seconds: Any) -> str:
    """Return seconds as a readable duration, such as `5 min`."""
    return durations.format_readable(timedelta(seconds=float(seconds)))


@register.simple_tag
def rest(until: datetime, now: datetime) -> SafeString:
    """Render the remaining dwell as a countdown that stops at zero."""
    left = max(until - now, timedelta())
    return format_html(
        '<span class="digits nowrap" role="timer" data-until="{}" data-rest>{}</span>',
        epoch(until),
        time_left(left).removesuffix(" over"),
    )


@register.simple_tag
def bar(part: Any, whole: Any = 100, tone: str = "ramp") -> SafeString:
    """Render a thin progress bar, hidden from screen readers; the number is shown beside it."""
    width = min(100.0, max(0.0, float(part) * 100 / float(whole))) if whole else 0.0
    return format_html(
        '<svg class="bar bar--{}" viewBox="0 0 100 4" preserveAspectRatio="none" '
        'aria-hidden="true" focusable="false"><rect class="bar__ground" width="100" height="4">'
        '</rect><rect class="bar__part" width="{}" height="4"></rect></svg>',
        tone,
        f"{width:.2f}",
    )
