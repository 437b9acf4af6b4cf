"""The page of one SLO: status, reasons if it is unknown, plots and their data, and history."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any

from django.http import Http404, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.http import require_GET

from controlplane.core import authority, durations
from controlplane.core.actions import Action
from controlplane.core.audit import change_feed
from controlplane.core.audit.differences import AuditChange, compare_texts
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.configuration import samples
from controlplane.core.freshness import Freshness, assess_freshness
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import PersonRequest, signed_in
from slo.arithmetic.evaluate import UNKNOWN, format_burn_rate
from slo.arithmetic.minutes import (
    MINUTE_SECONDS,
    MINUTES_A_DAY,
    end_of,
    last_ended,
    minute_of,
    window_minutes,
)
from slo.arithmetic.objective import BurnRateRule, describe_objective
from slo.arithmetic.windows import RECENT_MINUTES, min_covered
from slo.dashboard import annotations, board, data_gaps, plots
from slo.dashboard.annotations import Annotation
from slo.dashboard.plots import UsagePart
from slo.evaluation import budgets, objective_loader
from slo.models import Alert, Exclusion, Sli, Slo, SloStatus
from slo.models.objective import PROMETHEUS
from slo.objectives import documents
from slo.objectives.rules import FIELDS as RULE_FIELDS
from slo.templatetags.slos import counted_unit

from . import responses

ALERTS_SHOWN = 10
ENTRIES_SHOWN = 10
MARKS_SHOWN = 12
HOURS = 24
WHOLE_DOCUMENT_ACTIONS = ("slo.created", "slo.changed")
SILENT_AFTER = timedelta(minutes=5)
"""Age of the last counted minute above which an SLI counts as silent: reports arrive late."""
RECENT = f"{RECENT_MINUTES}m"
NEVER_PUSHED = "No events yet: push points to /api/v1/sli/, or report them with the client library."


@signed_in
@require_GET
def slo_page(request: PersonRequest, name: str) -> HttpResponse:
    now, actor = db_now(), actor_of(request)
    slo = find_slo(name)
    current = _current_context(slo, now)
    context = {
        **current,
        "team": authority.read_teams().owner_of(slo.resource),
        "may_edit": authority.decide(actor, Action.EDIT, slo.resource),
        "may_exclude": authority.decide(actor, Action.OVERRIDE, slo.resource),
        "samples": samples.find_sample_names("SLO", {slo.name: slo.changed_at}),
        **_history_context(request, slo),
        **_changes_context(slo, current["open_alerts"], now),
    }
    if not responses.is_part(request):
        span, last = plots.parse_span(request.GET, now), last_ended(now)
        # A span ends with the last counted minute, but events are known up to now.
        until = now if span.last == last else span.until
        marks = annotations.load_annotations(slo, span.since, until)
        context |= {
            "span": span,
            "ranges": plots.RANGES,
            "hours": plots.load_usage(slo, [last - 60 * hour for hour in range(HOURS, -1, -1)]),
            "days": _load_days(slo, last),
            "marks": marks[:MARKS_SHOWN],
            "more_marks": max(0, len(marks) - MARKS_SHOWN),
            "mark_kinds": sorted({mark.kind for mark in marks}),
        }
    return responses.render_live(request, "slo", context)


def find_slo(name: str) -> Slo:
    """Return the SLO of this name, else the last removed SLO of this name, else raise `Http404`."""
    rows = Slo.objects.filter(name=name).select_related("status", "sli")
    found = rows.filter(removed_at__isnull=True).first() or rows.order_by("-removed_at").first()
    if found is None:
        raise Http404
    return found


def _current_context(slo: Slo, now: datetime) -> dict[str, Any]:
    status, sli = getattr(slo, "status", None), getattr(slo, "sli", None)
    freshness = board.assess_status(status, now)
    shown = status or SloStatus()
    last = last_ended(now)
    is_known = status is not None and status.remaining_ratio is not None
    counted = None if is_known else budgets.load_counters([slo], [last]).get(slo.pk)
    no_data_since = status.since if status and status.state == "unknown" else None
    return {
        "now": now,
        "slo": slo,
        "sli": sli,
        "status": status,
        "left": shown.remaining_ratio,
        "last_hour": shown.burn_rates.get("1h"),
        "rate_style": _style_rate(shown, freshness),
        "last_six_hours": shown.burn_rates.get("6h"),
        "latest_values": json.dumps(
            {
                "left": shown.remaining_ratio,
                "rates": shown.burn_rates,
                "at": freshness.at and freshness.at.timestamp(),
                "current": freshness.is_current,
            }
        ),
        "condition": board.slo_condition(status),
        "freshness": freshness,
        "budget_gap": board.explain_unknown_budget(status, counted, last),
        "blockers": data_gaps.find_blockers({slo: no_data_since}).get(slo.pk, [])
        if no_data_since
        else [],
        "rules": _rule_rows(slo, shown),
        "reasons": explain_unknown(slo, sli, status, now),
        "silent_since": end_of(sli.last) if sli and silent_duration(sli, now) else None,
        "burning": _window_rows(slo, shown, is_evaluated=status is not None),
        "open_alerts": list(
            Alert.objects.filter(slo=slo, resolved_at__isnull=True)
            .select_related("slo__status")
            .order_by("opened_at")
        ),
        "meaning": describe_objective(slo.target, slo.window_days),
    }


def _style_rate(status: SloStatus, freshness: Freshness) -> str:
    """Return the CSS class of the last hour's burn rate."""
    if (status.burn_rates.get("1h") or 0) <= 1 or freshness.is_stale:
        return ""
    return "slos__figure--grave" if status.state == "firing" else "slos__figure--fast"


def _rule_rows(slo: Slo, status: SloStatus) -> list[dict[str, Any]]:
    rule_key = itemgetter(*RULE_FIELDS)
    states = {rule_key(one): one["state"] for one in status.rules}
    if status.state == UNKNOWN and not status.coverage.get(RECENT):
        # A rule is ok while a known window is quiet, even without samples since.
        states = {}
    return [
        {
            **one,
            "limit": one["burn_rate"],
            "state": states.get(rule_key(one), UNKNOWN),
            "long_rate": status.burn_rates.get(one["long"]),
            "short_rate": status.burn_rates.get(one["short"]),
        }
        for one in slo.rules
    ]


def _window_rows(slo: Slo, status: SloStatus, *, is_evaluated: bool) -> list[dict[str, Any]]:
    rows = []
    for name in sorted(_rule_windows(slo).union(status.burn_rates), key=window_minutes):
        rate = status.burn_rates.get(name)
        is_unknown = is_evaluated and rate is None
        why = explain_unknown_window(name, status.coverage, slo) if is_unknown else ""
        coverage = status.coverage.get(name)
        rows.append({"window": name, "rate": rate, "coverage": coverage, "why": why})
    return rows


def _load_days(slo: Slo, last: int) -> list[UsagePart]:
    """Return events and budget spent for each day (in local time) of the period up to `last`."""
    begin = last - slo.window_days * MINUTES_A_DAY
    midnight = timezone.localtime(end_of(last)).replace(hour=0, minute=0, second=0, microsecond=0)
    edges = {begin, last}
    day = midnight
    while minute_of(day) > begin:
        edges.add(minute_of(day))
        day = timezone.localtime(day - timedelta(hours=12)).replace(hour=0, minute=0)
    return plots.load_usage(slo, sorted(edges))


def _history_context(request: PersonRequest, slo: Slo) -> dict[str, Any]:
    alerts = list(Alert.objects.filter(slo=slo).order_by("-opened_at")[: ALERTS_SHOWN + 1])
    excluded = Exclusion.objects.filter(slo=slo).order_by("-starts_at", "-pk")
    rows = AuditEntry.objects.filter(target=f"slo:{slo.name}").order_by("-id")
    before = request.GET.get("audit_before", "")
    if before.isascii() and before.isdigit() and len(before) < 18:
        rows = rows.filter(pk__lt=int(before))
    entries = list(rows[: ENTRIES_SHOWN + 1])
    return {
        "alerts": alerts[:ALERTS_SHOWN],
        "more_alerts": len(alerts) > ALERTS_SHOWN,
        "exclusions": list(excluded[:ALERTS_SHOWN]),
        "fields": documents.describe_document(documents.to_document(slo)),
        "entries": [(entry, _describe_entry(entry)) for entry in entries[:ENTRIES_SHOWN]],
        "older_entries": entries[ENTRIES_SHOWN - 1].pk if len(entries) > ENTRIES_SHOWN else None,
    }


def _changes_context(slo: Slo, open_alerts: Sequence[Alert], now: datetime) -> dict[str, Any]:
    """Return the changes in the hour before the SLO's first open alert, else in the last hour."""
    began_at = open_alerts[0].opened_at if open_alerts else None
    switches = {str(action["switch"]) for action in slo.actions if action.get("switch")}
    return {
        "alert_began_at": began_at,
        "changes": change_feed.list_changes_before(
            began_at or now, services=[slo.service], targets={f"slo:{slo.name}", *switches}
        ),
    }


def _describe_entry(entry: AuditEntry) -> Sequence[AuditChange]:
    after = json.loads(entry.after)
    if entry.action in WHOLE_DOCUMENT_ACTIONS and isinstance(after, dict):
        return documents.describe_changes(json.loads(entry.before), after)
    return [one for one in compare_texts(entry.before, entry.after) if one.changed]


def silent_duration(sli: Sli | None, now: datetime) -> timedelta | None:
    """Return for how long an SLI has counted nothing; None if unknown or too short to matter."""
    if sli is None or sli.last is None:
        return None
    counted_at = end_of(sli.last)
    is_silent = assess_freshness(counted_at, SILENT_AFTER, now).is_stale and counted_at < now
    return now - counted_at if is_silent else None


def explain_unknown(
    slo: Slo, sli: Sli | None, status: SloStatus | None, now: datetime
) -> list[str]:
    """Return sentences that explain why an SLO is unknown, empty if it is known."""
    if status is not None and status.state != "unknown":
        return []
    if sli is None or sli.last is None:
        if slo.source.get("type") == PROMETHEUS:
            return ["No sample has been read from Prometheus yet; it is polled once a minute."]
        return [NEVER_PUSHED]
    reasons = []
    if silent := silent_duration(sli, now):
        minutes = durations.format_readable(silent - silent % timedelta(minutes=1))
        reasons.append(f"No events for {minutes}.")
    if status is None:
        return [*reasons, "Not evaluated yet; SLOs are evaluated once a minute."]
    unknown = (one for one in _rule_windows(slo) if status.burn_rates.get(one) is None)
    for name in sorted(unknown, key=window_minutes):
        reasons.append(explain_unknown_window(name, status.coverage, slo))
    if not reasons and not status.coverage.get(RECENT):
        reasons.append(f"No samples in the {RECENT_MINUTES} min up to the last evaluation.")
    return reasons


def _rule_windows(slo: Slo) -> set[str]:
    return {name for rule in slo.rules for name in (rule["long"], rule["short"])}


def explain_unknown_window(name: str, coverage: Mapping[str, float | None], slo: Slo) -> str:
    """Return a sentence that explains why the window `name` (`1h`) is unknown."""
    minutes = window_minutes(name)
    covered = round((coverage.get(name) or 0) * minutes)
    needed = min_covered(minutes)
    long = durations.format_readable(timedelta(minutes=minutes))
    if covered < needed:
        return f"Samples cover {covered} min of the last {long}; {needed} min are needed."
    if slo.min_events:
        return f"Fewer than {slo.min_events:,} {counted_unit(slo)} in the last {long}."
    return f"No events in the last {long}."


@signed_in
@require_GET
def slo_series(request: PersonRequest, name: str) -> HttpResponse:
    """Return a plot's data as JSON: burn rates, or with `plot=budget` the budget left."""
    slo, now = find_slo(name), db_now()
    if request.GET.get("plot") == "budget":
        last = last_ended(now)
        plot = plots.load_budget_plot(slo, last)
        rules: tuple[BurnRateRule, ...] = ()
        span = plots.PlotSpan("", last - slo.window_days * MINUTES_A_DAY, last)
    else:
        span = plots.parse_span(request.GET, now)
        plot = plots.load_burn_plot(slo, span.first, span.last)
        rules = objective_loader.load_objective(slo).rules
    marks = annotations.load_annotations(slo, span.since, span.until)
    return JsonResponse(
        {
            "times": [minute * MINUTE_SECONDS for minute in plot.minutes],
            "step": plot.step * MINUTE_SECONDS,
            "lines": [{"name": name, "values": values} for name, values in plot.lines.items()],
            "limits": [
                {
                    "value": float(rule.burn_rate),
                    "severity": rule.severity,
                    "name": f"{rule.severity} {format_burn_rate(float(rule.burn_rate))}",
                }
                for rule in sorted(rules, key=lambda one: (one.severity != "page", -one.burn_rate))
            ],
            "bands": [_to_band(mark) for mark in marks],
        }
    )


def _to_band(mark: Annotation) -> dict[str, Any]:
    ended = None if mark.ends is None else int(mark.ends.timestamp())
    until = "now" if mark.ends is None else f"{timezone.localtime(mark.ends):%-d %b %H:%M}"
    lasted = "" if mark.ends is None else f", {durations.format_readable(mark.ends - mark.begins)}"
    return {
        "kind": mark.kind,
        "label": mark.label,
        "name": mark.name,
        "said": f"{timezone.localtime(mark.begins):%-d %b %H:%M} to {until}{lasted}",
        "from": int(mark.begins.timestamp()),
        "to": ended,
    }
