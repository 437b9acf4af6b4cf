"""The page of one SLO: its status and reasons, plots, history and document."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.http import Http404, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_GET

from controlplane.core.audit.differences import AuditChange, compare_texts
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.page_responses import PersonRequest, signed_in
from slo.arithmetic import meanings
from slo.arithmetic.minutes import end_of, last_ended, minute_of
from slo.dashboard import annotations, board, plots, unknown_reasons
from slo.dashboard.annotations import Annotation
from slo.dashboard.plots import UsagePart
from slo.evaluation import objective_loader
from slo.models import Alert, Exclusion, Sli, Slo, SloStatus
from slo.objectives import descriptions, documents

from . import live_page, plot_span

ALERTS_SHOWN = 10
ENTRIES_SHOWN = 10
MARKS_SHOWN = 12
HOURS = 24
WHOLE_DOCUMENT_ACTIONS = ("slo.created", "slo.changed")


@dataclass(frozen=True)
class RuleRow:
    """A rule as the page shows it: its windows, their burn rates, and its state."""

    long: str
    short: str
    limit: float
    severity: str
    state: str
    long_rate: float | None
    short_rate: float | None


@signed_in
@require_GET
def slo_page(request: PersonRequest, name: str) -> HttpResponse:
    now = db_now()
    slo = find_slo(name)
    context = {
        **_current_context(slo, now),
        **_history_context(request, slo),
        **({} if live_page.is_part(request) else _plot_context(request, slo, now)),
    }
    return live_page.render_live(request, "one", context)


def find_slo(name: str) -> Slo:
    """Return the SLO; a removed one has a page unless its name was taken again."""
    named = Slo.objects.filter(name=name).select_related("status", "sli")
    found = named.filter(removed_at__isnull=True).first() or named.order_by("-removed_at").first()
    if found is None:
        raise Http404
    return found


def _current_context(slo: Slo, now: datetime) -> dict[str, Any]:
    status, sli = getattr(slo, "status", None), getattr(slo, "sli", None)
    judged_at = end_of(status.minute) if status else None
    late = timedelta(minutes=board.LATE_MINUTES)
    return {
        "now": now,
        "slo": slo,
        "sli": sli,
        "stands": status,
        "left": status.remaining_ratio if status else None,
        "last_hour": status.burn_rates.get("1h") if status else None,
        "last_six_hours": status.burn_rates.get("6h") if status else None,
        "judged_now": _plot_values_json(status),
        "condition": board.slo_condition(status),
        "judged_at": judged_at,
        "is_late": judged_at is not None and now - judged_at > late,
        "rules": make_rule_rows(slo, status),
        "reasons": unknown_reasons.explain_unknown(slo, sli, status, now),
        "silent_since": end_of(sli.last) if sli and unknown_reasons.silent_for(sli, now) else None,
        "burning": _window_rows(slo, sli, status),
        "open_alerts": list(
            Alert.objects.filter(slo=slo, resolved_at__isnull=True).order_by("opened_at")
        ),
        "promise": meanings.describe_objective(
            slo.target, slo.window_days, objective_loader.parse_rules(slo.rules)
        ),
    }


def _plot_values_json(status: SloStatus | None) -> str:
    """Return the present values for the plots' script."""
    left = status.remaining_ratio if status else None
    return json.dumps({"left": left, "rates": status.burn_rates if status else {}})


def make_rule_rows(slo: Slo, status: SloStatus | None) -> list[RuleRow]:
    """Return the rules with their stored state, unknown if never evaluated."""
    states = {
        (one["long"], one["short"], one["burn_rate"], one["severity"]): one["state"]
        for one in (status.rules if status else ())
    }
    rates = status.burn_rates if status else {}
    return [
        RuleRow(
            long=one["long"],
            short=one["short"],
            limit=one["burn_rate"],
            severity=one["severity"],
            state=states.get(
                (one["long"], one["short"], one["burn_rate"], one["severity"]), "unknown"
            ),
            long_rate=rates.get(one["long"]),
            short_rate=rates.get(one["short"]),
        )
        for one in slo.rules
    ]


def _window_rows(slo: Slo, sli: Sli | None, status: SloStatus | None) -> list[dict[str, Any]]:
    """Return each window with its burn rate and coverage."""
    return [
        {
            "window": name,
            "rate": status.burn_rates.get(name) if status else None,
            "coverage": status.coverage.get(name) if status else None,
            "why": _explain_window(slo, status, name),
        }
        for name in unknown_reasons.shown_windows(slo, status)
    ]


def _explain_window(slo: Slo, status: SloStatus | None, name: str) -> str:
    if status is None or status.burn_rates.get(name) is not None:
        return ""
    return unknown_reasons.explain_unknown_window(name, status.coverage, slo.min_events)


def _plot_context(request: PersonRequest, slo: Slo, now: datetime) -> dict[str, Any]:
    span, last = plot_span.parse_span(request.GET, now), last_ended(now)
    hours = plots.load_usage(slo, [last - 60 * hour for hour in range(HOURS, -1, -1)], last)
    marks = annotations.load_annotations(slo, span.since, span.until)
    return {
        "span": span,
        "ranges": plot_span.RANGES,
        "hours": hours,
        "days": _days(slo, last),
        "marks": marks[:MARKS_SHOWN],
        "more_marks": max(0, len(marks) - MARKS_SHOWN),
        "mark_kinds": _kinds(marks),
    }


def _days(slo: Slo, last: int) -> list[UsagePart]:
    """Return the days of the period that ends now, by the person's own midnight."""
    begin = last - slo.window_days * 1440
    midnight = timezone.localtime(end_of(last)).replace(hour=0, minute=0, second=0, microsecond=0)
    edges = {begin, last}
    day = midnight
    while minute_of(day) > begin:
        edges.add(minute_of(day))
        day = timezone.localtime(day - timedelta(hours=12)).replace(hour=0, minute=0)
    return plots.load_usage(slo, sorted(edges), last)


def _kinds(marks: Sequence[Annotation]) -> list[str]:
    return sorted({mark.kind for mark in marks})


def _history_context(request: PersonRequest, slo: Slo) -> dict[str, Any]:
    alerts = list(Alert.objects.filter(slo=slo).order_by("-opened_at")[: ALERTS_SHOWN + 1])
    excluded = Exclusion.objects.filter(slo=slo).order_by("-starts_at", "-pk")
    return {
        "alerts": alerts[:ALERTS_SHOWN],
        "more_alerts": len(alerts) > ALERTS_SHOWN,
        "exclusions": list(excluded[:ALERTS_SHOWN]),
        "picture": descriptions.describe_document(documents.to_document(slo)),
        **_audit_context(request, slo),
    }


def _audit_context(request: PersonRequest, slo: Slo) -> dict[str, Any]:
    rows = AuditEntry.objects.filter(target=f"slo:{slo.name}").order_by("-id")
    before = request.GET.get("audit_before", "")
    if before.isascii() and before.isdigit() and len(before) < 18:
        rows = rows.filter(pk__lt=int(before))
    found = list(rows[: ENTRIES_SHOWN + 1])
    older = found[ENTRIES_SHOWN - 1].pk if len(found) > ENTRIES_SHOWN else None
    entries = [(entry, _describe_entry(entry)) for entry in found[:ENTRIES_SHOWN]]
    return {"entries": entries, "older_entries": older}


def _describe_entry(entry: AuditEntry) -> Sequence[AuditChange]:
    """Return the changes of an audit entry, in words if it has whole documents."""
    after = json.loads(entry.after)
    if entry.action in WHOLE_DOCUMENT_ACTIONS and isinstance(after, dict):
        return descriptions.describe_changes(json.loads(entry.before), after)
    return [one for one in compare_texts(entry.before, entry.after) if one.changed]
