"""Data of the plots of an SLO as JSON, for the script of its page."""

from typing import Any

from django.http import HttpResponse, JsonResponse
from django.utils.timezone import localtime
from django.views.decorators.http import require_GET

from controlplane.core import durations
from controlplane.core.clock import db_now
from controlplane.core.page_responses import PersonRequest, signed_in
from slo.arithmetic.minutes import MINUTE_SECONDS, last_ended
from slo.arithmetic.objective import Objective
from slo.dashboard import annotations, plots
from slo.dashboard.annotations import Annotation
from slo.evaluation import objective_loader
from slo.models import Slo

from . import slo_detail


@signed_in
@require_GET
def slo_series(request: PersonRequest, name: str) -> HttpResponse:
    """Return the burn rates over the time span in the query string, as JSON.

    With `plot=budget`, return the remaining budget at times of the SLO's window instead.
    """
    slo, now = slo_detail.find_slo(name), db_now()
    drawn = _budget_data(slo, last_ended(now)) if request.GET.get("plot") == "budget" else None
    return JsonResponse(drawn or _burn_data(slo, plots.parse_span(request.GET, now)))


def _burn_data(slo: Slo, span: plots.PlotSpan) -> dict[str, Any]:
    found = plots.load_burn_plot(slo, span.first, span.last)
    marks = annotations.load_annotations(slo, span.since, span.until)
    return {
        "times": [minute * MINUTE_SECONDS for minute in found.minutes],
        "step": found.step * MINUTE_SECONDS,
        "lines": [{"name": name, "values": rates} for name, rates in found.lines.items()],
        "limits": _limit_lines(objective_loader.load_objective(slo)),
        "bands": [_to_band(mark) for mark in marks],
    }


def _budget_data(slo: Slo, last: int) -> dict[str, Any]:
    found = plots.load_budget_plot(slo, last)
    span = plots.PlotSpan("", last - slo.window_days * 1440, last)
    marks = annotations.load_annotations(slo, span.since, span.until)
    return {
        "times": [minute * MINUTE_SECONDS for minute in found.minutes],
        "step": (found.minutes[1] - found.minutes[0]) * MINUTE_SECONDS if found.minutes else 0,
        "lines": [{"name": "left", "values": found.left}],
        "limits": [],
        "bands": [_to_band(mark) for mark in marks],
    }


def _limit_lines(objective: Objective) -> list[dict[str, Any]]:
    """Return the burn rates at which rules fire, paging rules first."""
    ordered = sorted(objective.rules, key=lambda rule: (rule.severity != "page", -rule.burn_rate))
    return [
        {
            "value": float(rule.burn_rate),
            "severity": rule.severity,
            "name": f"{rule.severity} × {rule.burn_rate.normalize():f}",
        }
        for rule in ordered
    ]


def _to_band(mark: Annotation) -> dict[str, Any]:
    ended = None if mark.ends is None else int(mark.ends.timestamp())
    until = "now" if mark.ends is None else f"{localtime(mark.ends):%-d %b %H:%M}"
    lasted = "" if mark.ends is None else f", {durations.format_readable(mark.ends - mark.begins)}"
    return {
        "kind": mark.kind,
        "label": mark.label,
        "name": mark.name,
        "said": f"{localtime(mark.begins):%-d %b %H:%M} to {until}{lasted}",
        "from": int(mark.begins.timestamp()),
        "to": ended,
    }
