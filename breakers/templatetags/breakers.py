"""Template tags and filters of breakers: states, modes, dependency names and numbers."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django import template
from django.templatetags.static import static
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString

from breakers.counts import BreakerCounts
from breakers.map.graph import MapLine, MapNode
from breakers.message_facts import dependency_path
from breakers.models import Service
from breakers.policies import differences
from breakers.probes.services import PROBE_CADENCE
from breakers.states.dependency_status import DependencyStatus
from controlplane.core import durations
from controlplane.core.freshness import assess_freshness
from controlplane.core.templatetags.screen import figure_at, icon

register = template.Library()

# state → icon, word, tone
STATES = {
    "open": ("breaker-open", "Open", "engaged"),
    "half_open": ("breaker-half", "Half-open", "pending"),
    "closed": ("breaker-closed", "Closed", "released"),
    "unknown": ("unknown", "Not reported", "quiet"),
    "failing": ("warning", "Closed, failing", "pending"),
    "away": ("critical", "Down", "engaged"),
    "there": ("check", "Responds", "released"),
}
RELATIONS = {"up": "affected by its failure", "down": "needed by it"}
# mode → word, description
MODES = {
    "forced_open": ("Forced open", "Every call is rejected immediately and takes the fallback."),
    "forced_closed": ("Forced closed", "Every call is sent, however many fail."),
    "disabled": ("Disabled", "Every call is sent; the breaker counts nothing."),
    "metrics_only": ("Metrics only", "Every call is sent and counted; the breaker never opens."),
    "reset": ("Reset", "The breaker closes and counts from zero."),
    "normal": ("Normal", "The breaker follows its policy."),
}
# mode → label of the button that forces it; `{}` is the dependency
FORCE_LABELS = {
    "forced_open": "Force {} open",
    "forced_closed": "Force {} closed",
    "disabled": "Disable the breaker of {}",
    "metrics_only": "Set {} to metrics only",
    "reset": "Reset the breaker of {}",
}
CAUSES = {"override ended": "the override ended", "reset": "reset"}
TIMED_CAUSES = {
    "open_seconds": "open for {} s, probing",
    "half_open_max_seconds": "a probe took longer than {} s",
}
_TIMED_CAUSE = re.compile(rf"({'|'.join(TIMED_CAUSES)}) ([0-9.]+) over")
_COMPARED_CAUSE = re.compile(
    r"(probes: )?(consecutive_failures|failure_count|failure_rate|slow_call_rate)"
    r" ([0-9]+(?:\.[0-9]+)?) (>=|<) ([0-9]+(?:\.[0-9]+)?)"
)
COUNTER_WORDS = {
    "success": "Succeeded",
    "failure": "Failed",
    "timeout": "Timed out",
    "slow": "Slow",
    "rejected": "Rejected",
    "fallback": "Fallbacks used",
    "retry": "Retries",
}
FALLBACK_WORDS = {
    "error": "An error",
    "cache": "The cached answer",
    "provider": "Another provider",
    "default": "A default, marked as partial",
}
KIND_ICONS = {
    "service": "system",
    "worker": "jobs",
    "client": "monitor",
    "store": "store",
    "external": "global",
}

for _name, _filter in (
    ("state_word", lambda state: STATES.get(state, ("", state, ""))[1].lower()),
    ("state_icon", lambda state: STATES.get(state, ("unknown", "", ""))[0]),
    ("mode_word", lambda mode: MODES.get(mode, (mode, ""))[0]),
    ("mode_does", lambda mode: MODES.get(mode, ("", ""))[1]),
    ("counter_word", lambda name: COUNTER_WORDS.get(name, name)),
    ("fallback_word", lambda mode: FALLBACK_WORDS.get(mode, mode)),
    ("kind_icon", lambda kind: KIND_ICONS.get(kind, "unknown")),
    ("replace_underscores", lambda name: name.replace("_", " ")),
    ("hop_words", differences.hop_line),
):
    register.filter(_name, _filter)


@register.simple_tag
def breaker_state(state: str, detail: str = "") -> SafeString:
    """Return a state as icon, word and color."""
    symbol, word, tone = STATES.get(state, ("unknown", state, "quiet"))
    return render_state(symbol, f"{word} {detail}".strip(), tone)


def render_state(symbol: str, word: str, tone: str) -> SafeString:
    return format_html(
        '<span class="state state--{}">{}<span>{}</span></span>', tone, icon(symbol), word
    )


@register.simple_tag
def breaker_mode(mode: str) -> SafeString:
    """Return a forced mode as icon and word."""
    return render_state("override", MODES.get(mode, (mode, ""))[0], "ramping")


@register.simple_tag
def probe_state(service: Service, now: datetime) -> str:
    """Return what the last probe of a service shows; empty for a service without a probe."""
    probe = getattr(service, "probe", None)
    freshness = assess_freshness(probe and probe.checked_at, PROBE_CADENCE, now)
    if freshness.is_stale:
        return figure_at(freshness, "Unknown")
    if probe and probe.is_away:
        return breaker_state("away")
    if probe and probe.failures:
        return render_state("warning", "No response, retrying", "quiet")
    if probe and probe.error:
        return render_state("warning", "Not allowed to check", "quiet")
    if freshness.at is not None:
        return breaker_state("there")
    return render_state("clock", "Not checked yet", "quiet") if service.probe_url else ""


@register.simple_tag
def service_options(slugs: Sequence[str]) -> SafeString:
    """Return the options of a list of services, of which there may be thousands."""
    # One call escapes all of them; no slug has a line break.
    values = escape("\n".join(slugs)).replace("\n", '"></option><option value="')
    return SafeString(f'<option value="{values}"></option>' if slugs else "")


@register.simple_tag
def no_fallback(document: Mapping[str, Any]) -> str:
    """Return what callers get from a dependency whose policy has no fallback."""
    if document.get("fallback"):
        return "No fallback: callers get an error."
    if document:
        return "The policy sets no fallback: the caller's own settings apply."
    return "No policy is registered: the caller's own settings apply."


@register.simple_tag
def dependency_name(caller: str, callee: str, link: bool = True) -> SafeString:
    """Return `core → oracle`, linked to the dependency's page."""
    name = format_html(
        '{}<span class="dependency-pair__arrow" aria-hidden="true"> → </span>'
        '<span class="visually-hidden"> to </span>{}',
        caller,
        callee,
    )
    if not link:
        return format_html('<span class="dependency-pair">{}</span>', name)
    path = dependency_path(caller, callee)
    return format_html('<a class="dependency-pair" href="{}">{}</a>', path, name)


@register.filter
def node_words(node: MapNode) -> str:
    """Return a box's text: its state if that is not closed, otherwise kind and state."""
    word = STATES[node.state][1].lower() if node.state else ""
    if node.is_troubled or node.state == "unknown":
        return word
    return ", ".join(filter(None, (node.kind or "unregistered", word)))


@register.filter
def node_label(node: MapNode) -> str:
    """Return a box's label for screen readers, with the numbers of its lines."""
    return f"{node.name}, {node_words(node)}: called by {node.called_by}, calls {node.calls}"


@register.filter
def node_icon(node: MapNode) -> str:
    """Return the icon of a box: of its trouble, or of its kind."""
    return STATES[node.state][0] if node.is_troubled else KIND_ICONS.get(node.kind, "unknown")


@register.filter
def line_words(line: MapLine) -> str:
    """Return the tooltip of a line: `core → oracle: open, 25 % failed or rejected, high`."""
    share, override = line.recent_failure_share, line.status.override
    parts = [
        STATES[line.state][1].lower(),
        "" if share is None else f"{ratio(share)} failed or rejected",
        line.dependency.criticality,
        MODES[override.mode][0].lower() if override else "",
    ]
    return f"{line.dependency.label}: {', '.join(filter(None, parts))}"


@register.filter
def line_icon(line: MapLine) -> str:
    """Return the icon of a marked line: of its override, or of its state."""
    return "override" if line.status.override else STATES[line.state][0]


@register.filter
def relation_words(line: MapLine) -> str:
    """Return the relation of a line to the focused service."""
    return RELATIONS.get(line.relation, "unrelated")


@register.filter
def instances_words(status: DependencyStatus) -> str:
    """Return the numbers of instances by state: `2 open, 6 closed, 1 stale`."""
    counts = {**status.counts, "stale": status.stale}
    shown = [state for state in ("open", "half_open", "closed", "stale") if counts[state]]
    texts = (f"{counts[state]:,} {state.replace('_', '-')}" for state in shown)
    return ", ".join(texts) or "none reporting"


@register.filter
def ratio(share: float | None) -> str:
    """Return a ratio of 0 to 1 as a percentage (`0.4 %`, `63 %`), a dash if it is None."""
    if share is None:
        return "–"
    value = 100 * share
    if 0 < value < 0.1:
        return "< 0.1 %"
    return f"{value:.1f} %" if 0 < value < 9.95 else f"{value:.0f} %"


@register.filter
def cause_words(cause: str) -> str:
    """Return the client's cause of a state change for people; an unknown one is unchanged.

    The causes are those of `switchgear.patterns.breaker_rules` and `state_machine`.
    """
    if cause in CAUSES:
        return CAUSES[cause]
    if mode := MODES.get(cause.removeprefix("override ")):
        return f"override: {mode[0].lower()}" if cause.startswith("override ") else cause
    if found := _TIMED_CAUSE.fullmatch(cause):
        seconds = found[2].removesuffix(".0")
        return TIMED_CAUSES[found[1]].format(seconds)
    found = _COMPARED_CAUSE.fullmatch(cause)
    if found is None:
        return cause
    probes, measured, value, comparison, limit = found.groups()
    if measured == "consecutive_failures":
        return f"{value} failure{'' if value == '1' else 's'} in a row (limit {limit})"
    if measured == "failure_count":
        return f"{value} call{'' if value == '1' else 's'} failed (limit {limit})"
    verb = "failed" if measured == "failure_rate" else "were slow"
    of = "probes" if probes else "calls"
    limited = f"limit {ratio(float(limit))}"
    if comparison == "<":
        limited = f"below the limit of {ratio(float(limit))}"
    return f"{ratio(float(value))} of the {of} {verb}, {limited}"


@register.filter
def failure_words(counts: BreakerCounts) -> str:
    """Return failed and rejected calls as shares of all calls: `25 % failed, 40 % rejected`."""
    failed = ratio((counts.share("failure") or 0) + (counts.share("timeout") or 0))
    rejected = f", {ratio(counts.share('rejected'))} rejected" if counts.rejected else ""
    return f"{failed} failed{rejected}"


@register.filter
def times(factor: float | None) -> str:
    """Return a factor as text, such as `× 1.04`."""
    return "–" if factor is None else f"× {factor:.2f}".rstrip("0").rstrip(".")


@register.filter
def milliseconds(value: Any) -> str:
    """Return a timeout in a readable unit: `30 s`, `250 ms`, `3 min`."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return "–"
    if value < 1000 or value % 1000:
        return f"{value:g} ms"
    seconds = int(value // 1000)
    if seconds <= 300:
        return f"{seconds} s"
    return durations.format_readable(timedelta(seconds=seconds))


@register.simple_tag
def sprite(name: str) -> str:
    """Return the URL of an icon, for an SVG `use` element."""
    return f"{static('icons.svg')}#{name}"
