"""A postmortem draft in Markdown: known facts, and questions for people. Times are UTC."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from controlplane.core import durations
from controlplane.core.console_urls import console_url
from controlplane.core.runbooks.markdown import escape_markdown
from slo.alerts import notifications
from slo.arithmetic.minutes import last_ended, minute_of, window_minutes
from slo.arithmetic.objective import describe_rule_key
from slo.arithmetic.subjects import format_subject
from slo.evaluation import budgets
from slo.models import Alert
from switches.models import Episode
from switches.scopes import SCOPES

from . import alert_timeline

RESPONSE_TARGETS = {"critical": timedelta(minutes=5), "warning": timedelta(minutes=30)}
"""Longest time until an acknowledgement, by severity; others may take until the next workday."""
SCOPE_QUESTION = "*Everything, one tenant, or one feature?*"
REVIEW_QUESTIONS = (
    "What went well: *detection, the runbook, who was there?*",
    "What could be better: *what was slow, missing, or luck?*",
)
PREVENTION = ("| Item | Owner | Due | State |", "|---|---|---|---|", "|  |  |  | open |")


def write_draft(alert: Alert, now: datetime) -> str:
    """Return a postmortem draft about an alert; an open alert is treated as ending `now`."""
    stopped = alert_timeline.load_episodes(alert, now)
    parts = [
        [f"# Postmortem: {escape_markdown(alert.summary)}"],
        ["## Summary", *_write_summary(alert, stopped, now)],
        ["## Timeline", *_write_timeline(alert, now)],
        ["## Root cause", *_write_cause(alert)],
        ["## Impact analysis", *_write_impact(alert, stopped, now)],
        ["## Response", _format_bullets(_describe_acknowledgement(alert), *REVIEW_QUESTIONS)],
        ["## Prevention", "\n".join(PREVENTION)],
    ]
    return "\n\n".join(paragraph for part in parts for paragraph in part) + "\n"


def _write_summary(alert: Alert, stopped: Sequence[Episode], now: datetime) -> Iterator[str]:
    lasted = durations.format_readable((alert.resolved_at or now) - alert.opened_at)
    over = (
        f"{_format_time(alert.resolved_at)}, after {lasted}"
        if alert.resolved_at
        else f"not yet, {lasted} after it began ({_format_time(now)})"
    )
    label = f" ({escape_markdown(alert.label)})" if alert.label else ""
    links = [_format_link("Alert", console_url(notifications.alert_path(alert)))]
    if alert.path:
        links.append(_format_link(escape_markdown(alert.subject_label), console_url(alert.path)))
    links.append(_format_link("Runbook", notifications.runbook_url(alert)))
    yield _format_bullets(
        f"Began: {_format_time(alert.opened_at)}",
        f"Recovered: {over}",
        f"Impact scope: {_describe_scope(alert, stopped)}",
        f"Severity: {escape_markdown(alert.severity)}{label}",
        f"Rule: {escape_markdown(describe_rule_key(alert.rule))}",
        *([" · ".join(one for one in links if one)] if any(links) else []),
    )


def _write_timeline(alert: Alert, now: datetime) -> Iterator[str]:
    events, is_cut = alert_timeline.load_incident_events(alert, now)
    table = ["| Time (UTC) | Event |", "|---|---|"]
    for one in events:
        by = f" (by {escape_markdown(one.who)})" if one.who else ""
        why = f": {escape_markdown(one.more)}" if one.more else ""
        table.append(f"| {_format_time(one.at)} | {escape_markdown(one.text)}{by}{why} |")
    yield "\n".join(table)
    if is_cut:
        yield f"*Only the first {alert_timeline.MAX_EVENTS} events of the audit trail are listed.*"
    yield "*This is the timeline of the whole installation: remove unrelated events.*"


def _write_cause(alert: Alert) -> Iterator[str]:
    yield "*What was it, and what let it through?*"
    windows = alert.evidence.get("windows")
    if isinstance(windows, Mapping) and windows:
        yield "Counts when it opened:"
        table = ["| Window | Events | Bad | Burn rate |", "|---|---|---|---|"]
        for name, one in windows.items():
            cells = [name]
            for figure in map(one.get, ("total", "bad", "burn_rate")):
                is_number = isinstance(figure, int | float) and not isinstance(figure, bool)
                cells.append(f"{figure:,.10g}" if is_number else "unknown")
            table.append(f"| {' | '.join(map(escape_markdown, cells))} |")
        yield "\n".join(table)
    elif alert.evidence:
        yield "Figures when it opened:"
        pairs = ((name, format_subject(str(one))) for name, one in alert.evidence.items())
        yield _format_bullets(
            *(f"{escape_markdown(name)}: {escape_markdown(text)}" for name, text in pairs)
        )


def _write_impact(alert: Alert, stopped: Sequence[Episode], now: datetime) -> Iterator[str]:
    features = [
        f"{escape_markdown(one.switch_id)} was stopped from {_format_time(one.engaged_at)}"
        + (f" to {_format_time(one.ended_at)}" if one.ended_at else " on")
        + f": {escape_markdown(one.reason)}"
        for one in stopped
    ]
    service = f"what depends on {escape_markdown(alert.service)}" if alert.service else "*which?*"
    nested = "".join(f"\n  - {one}" for one in features)
    yield _format_bullets(
        "Users affected: *how many?*",
        f"Features affected: {service}{nested}",
        f"Error budget spent: {_describe_budget(alert, now)}",
    )


def _describe_acknowledgement(alert: Alert) -> str:
    allowed = RESPONSE_TARGETS.get(alert.severity)
    within = (
        f"within {durations.format_readable(allowed)}" if allowed else "on the next working day"
    )
    if alert.acknowledged_at is None:
        return f"Acknowledged: no (target: {within})"
    duration = durations.format_readable(max(alert.acknowledged_at - alert.opened_at, timedelta(0)))
    by = escape_markdown(alert.acknowledged_by)
    return f"Acknowledged: by {by}, {duration} after it opened (target: {within})"


def _describe_scope(alert: Alert, stopped: Sequence[Episode]) -> str:
    """Return the switches that were stopped or alerted about; without any, a question to answer."""
    ids = dict.fromkeys([alert.subject, *(one.switch_id for one in stopped)])
    pairs = [one.split(":", 1) for one in ids if one.partition(":")[0] in SCOPES]
    parts = []
    for scope in SCOPES.values():
        keys = [escape_markdown(key) for found, key in pairs if found == scope.name]
        if keys and scope.stops_everything:
            return scope.noun
        if keys:
            parts.append(f"{scope.noun if len(keys) == 1 else scope.plural} {', '.join(keys)}")
    return "; ".join(parts) or SCOPE_QUESTION


def _describe_budget(alert: Alert, now: datetime) -> str:
    """Describe the budget spent by an incident, and the budget left at its end.

    The incident begins one window (the longest in the evidence) before the alert opened.
    """
    if alert.slo is None:
        return "*this rule has none; which SLOs suffered?*"
    end = last_ended(alert.resolved_at or now)
    windows = alert.evidence.get("windows") or {}
    noticed = max((window_minutes(name) for name in windows), default=0)
    begin = min(minute_of(alert.opened_at) - noticed, end)
    spent = budgets.load_spent([alert.slo], (begin, end)).get(alert.slo.pk)
    if spent is None or spent.in_all is None or spent.remaining_ratio is None:
        return "unknown: too few events were counted"
    return (
        f"{_format_share(spent.in_all)} of that of {alert.slo.window_days} days;"
        f" {_format_share(spent.remaining_ratio)} of it was left at the end"
    )


def _format_share(ratio: float) -> str:
    return f"{100 * ratio:,.3g} %"


def _format_time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _format_link(words: str, address: str) -> str:
    return f"[{words}](<{address.replace('<', '%3C').replace('>', '%3E')}>)" if address else ""


def _format_bullets(*lines: str) -> str:
    return "\n".join(f"- {line}" for line in lines)
