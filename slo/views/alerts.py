"""The pages of alerts: the list, one alert, acknowledgement, and the postmortem draft."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.core.paginator import Paginator
from django.db.models import BooleanField, Count, ExpressionWrapper, Min, Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.views.decorators.http import require_GET, require_http_methods

from controlplane.core import authority, durations
from controlplane.core.actions import Action
from controlplane.core.actors import Actor
from controlplane.core.audit import change_feed
from controlplane.core.authority import TeamFilter
from controlplane.core.change_views import handle_change, submitted_data
from controlplane.core.clock import db_now
from controlplane.core.errors import NotFound
from controlplane.core.gates.models import Hold
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import PersonRequest, signed_in
from controlplane.core.runbooks import markdown
from controlplane.core.team_filter import build_filter_context, read_team_filter
from controlplane.notify.delivery import statements
from controlplane.notify.escalation import forecast
from slo.alerts import groups, lifecycle, notifications
from slo.arithmetic.minutes import window_minutes
from slo.arithmetic.subjects import format_subject
from slo.dashboard import data_gaps
from slo.evaluation import alert_readings, budgets
from slo.evaluation.alert_readings import AlertReading
from slo.models import Alert, SloStatus
from slo.models.alerts import SEVERITIES, WORST_FIRST, AlertQuerySet
from slo.objectives.permissions import SCOPE
from slo.postmortems import alert_timeline, draft
from switches.models import Episode

from . import responses
from .responses import OptionalReasonForm

OPEN, RESOLVED, ALL = "open", "resolved", "all"
STATES = (OPEN, RESOLVED, ALL)
ACKNOWLEDGED_LAST = ExpressionWrapper(Q(acknowledged_at__isnull=False), output_field=BooleanField())
PAGE_SIZE = 50
MAX_NOTE_LENGTH = 200
WORDS = {"allow": "let through", "of_them": "affected calls"}


@signed_in
@require_GET
def alerts_page(request: PersonRequest) -> HttpResponse:
    """Show open alerts, the worst first; on request, resolved or all alerts, the newest first.

    With `?group=`, show the alerts of one group only, open or resolved.
    """
    now = db_now()
    group = _read_group(request.GET.get("group", ""))
    state = request.GET.get("state", "")
    state = state if state in STATES else OPEN
    if group:
        state = ALL
    severity, q = request.GET.get("severity", ""), _clean(request.GET.get("q", ""))
    slo = _clean(request.GET.get("slo", ""))
    rows = _filter_alerts(state, severity, slo, q)
    if group:
        rows = rows.filter(Q(group=group) | Q(pk=group))
    teams = authority.read_teams()
    team_filter = read_team_filter(request, teams)
    rows, hidden = _select_by_team(rows, team_filter)
    page = Paginator(_list_groups(rows, state), PAGE_SIZE).get_page(request.GET.get("page"))
    context = {
        **build_filter_context(team_filter, hidden.count()),
        "critical_hidden": hidden.filter(severity="critical", resolved_at=None).count(),
        "teams": teams,
        "now": now,
        "page": page,
        "groups": _load_members(rows, [group_id for (group_id,) in page.object_list]),
        "state": state,
        "severity": severity if severity in SEVERITIES else "",
        "severities": SEVERITIES,
        "q": q,
        "slo_name": slo,
        "group": group,
        "narrowed": bool(q or slo or group or team_filter.wanted) or severity in SEVERITIES,
        "open": Alert.objects.count_open(),
    }
    return responses.render_live(request, "alerts", context)


@signed_in
@require_GET
def alert_page(request: PersonRequest, alert_id: int) -> HttpResponse:
    now = db_now()
    alert = _find_alert(alert_id)
    escalations = alert_timeline.load_escalations(alert)
    latest = escalations[-1] if escalations else None
    status = getattr(alert.slo, "status", None)
    reading = alert_readings.read_alert(alert, now)
    no_data_since = None if alert.resolved_at else reading.no_data_since
    is_related = Q(subject=alert.subject)
    if alert.service:
        is_related |= Q(service=alert.service)
    related = Alert.objects.filter(is_related, resolved_at__isnull=True).exclude(pk=alert.pk)
    context = {
        "now": now,
        "alert": alert,
        "team": authority.read_teams().owner_of(alert.resource),
        "may_acknowledge": authority.decide(actor_of(request), Action.EXTEND, alert.resource),
        "escalation": latest,
        "group_waiting": Alert.objects.filter(
            group=alert.group, resolved_at__isnull=True, acknowledged_at__isnull=True
        ).count()
        if alert.group
        else 0,
        "next": forecast.next_notices([latest], now).get(latest.pk) if latest else None,
        "called_names": alert_timeline.last_called(latest) if latest else [],
        "call_statement": statements.describe_escalation(latest) if latest else None,
        "reading": reading,
        "no_data_since": no_data_since,
        "blockers": data_gaps.find_blockers({alert.slo: no_data_since}).get(alert.slo.pk, [])
        if alert.slo and no_data_since
        else [],
        "windows": _window_rows(alert, reading, status),
        "figures": _figure_rows(alert),
        "budget": {
            "then": alert.evidence.get("remaining_ratio"),
            "now": status.remaining_ratio if status else None,
        },
        "trip_requests": _trip_rows(alert),
        "holds": list(Hold.objects.filter(key=notifications.alert_subject(alert))),
        "entries": alert_timeline.load_timeline(alert, escalations),
        "runbook": notifications.find_runbook(alert),
        "changes": change_feed.list_changes_before(
            alert.opened_at, services=[alert.service], targets=_audit_targets(alert)
        ),
        "others": list(related.order_by(WORST_FIRST, "opened_at")[:10]),
    }
    return responses.render_live(request, "alert", context)


@signed_in
@require_http_methods(["GET", "POST"])
def acknowledge_page(request: PersonRequest, alert_id: int) -> HttpResponse:
    alert = _find_alert(alert_id)

    def carry_out(actor: Actor, now: datetime, comment: str) -> str:
        lifecycle.acknowledge_alert(alert_id=alert_id, actor=actor, now=now, comment=comment)
        return f"{alert.subject_label}: acknowledged. Escalation pauses for 24 hours."

    return _acknowledge(request, [alert], carry_out, reverse("alert_page", args=[alert_id]))


@signed_in
@require_http_methods(["GET", "POST"])
def acknowledge_group_page(request: PersonRequest, group_id: int) -> HttpResponse:
    """Acknowledge the shown alerts of a group: those that the form lists."""
    actor_of(request).require(SCOPE)
    try:
        members = lifecycle.find_group(group_id)
    except NotFound as error:
        return responses.show_refusal(request, error.detail)
    alerts = [one for one in members if one.acknowledged_at is None] or members

    def carry_out(actor: Actor, now: datetime, comment: str) -> str:
        shown = {int(one) for one in request.POST.getlist("alert") if one.isdecimal()}
        done = lifecycle.acknowledge_alerts(
            alert_ids=shown & {one.pk for one in members},
            actor=actor,
            now=now,
            comment=comment,
        )
        count = f"{len(done)} alert{'s' if len(done) != 1 else ''}"
        return f"{count} acknowledged. Escalation pauses for 24 hours."

    return _acknowledge(request, alerts, carry_out, reverse("alerts_page"))


def _acknowledge(
    request: PersonRequest,
    alerts: Sequence[Alert],
    carry_out: Callable[[Actor, datetime, str], str],
    back: str,
) -> HttpResponse:
    for resource in sorted({one.resource for one in alerts}):
        authority.require(actor_of(request), Action.EXTEND, resource)
    form = OptionalReasonForm(submitted_data(request))
    return handle_change(
        request,
        form,
        lambda actor, now: carry_out(actor, now, form.get_text("reason")),
        scope=SCOPE,
        template="slo/acknowledge.html",
        context=lambda _now: {
            "alerts": alerts,
            "is_over": all(one.resolved_at for one in alerts),
            "headline": groups.describe_group(alerts),
            "url": request.path,
            "back": back,
        },
        back=back,
        refused=lambda error: responses.show_refusal(request, error.detail, alerts[0].slo),
    )


@signed_in
@require_GET
def postmortem_page(request: PersonRequest, alert_id: int) -> HttpResponse:
    """Show the postmortem draft of an alert, or download it with `?download`."""
    actor_of(request).require(alert_timeline.SCOPE)
    now = db_now()
    alert = _find_alert(alert_id)
    text = draft.write_draft(alert, now)
    if "download" in request.GET:
        response = HttpResponse(text, content_type="text/markdown; charset=utf-8")
        response["Content-Disposition"] = f'attachment; filename="postmortem-{alert.pk}.md"'
        return response
    context = {"now": now, "alert": alert, "text": text, "body": markdown.render_html(text)}
    return render(request, "slo/postmortem.html", context)


def _read_group(text: str) -> int:
    """Return the id of a group of alerts, 0 without one."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


def _find_alert(alert_id: int) -> Alert:
    rows = Alert.objects.select_related("slo__status", "slo__sli", "threshold")
    return get_object_or_404(rows, pk=alert_id)


def _audit_targets(alert: Alert) -> set[str]:
    """Return the audit targets of the alert's rule and subject."""
    if alert.slo is not None:
        switches = {str(action["switch"]) for action in alert.slo.actions if action.get("switch")}
        return {f"slo:{alert.subject}", *switches}
    return {alert.subject, f"dependency:{alert.subject}", f"threshold:{alert.rule}"}


def _filter_alerts(state: str, severity: str, slo: str, q: str) -> AlertQuerySet:
    rows = Alert.objects.select_related("slo__status", "threshold")
    if state != ALL:
        rows = rows.filter(resolved_at__isnull=state == OPEN)
    if severity in SEVERITIES:
        rows = rows.filter(severity=severity)
    if slo:
        rows = rows.filter(kind=Alert.Kind.BURN, subject=slo)
    if q:
        name = q.replace(" → ", "->")  # a dependency's name as the page shows it
        matches = Q(subject__icontains=name) | Q(rule__icontains=q) | Q(summary__icontains=q)
        rows = rows.filter(matches | Q(service__contains=q))
    return rows


def _select_by_team(
    rows: AlertQuerySet, team_filter: TeamFilter
) -> tuple[AlertQuerySet, AlertQuerySet]:
    """Return the alerts in groups with one that the filter selects, and the other alerts."""
    if team_filter.is_all:
        return rows, rows.none()
    group_ids = rows.order_by().of_team(team_filter).with_group().values("group_id")
    selected = Q(pk__in=rows.order_by().with_group().filter(group_id__in=group_ids).values("pk"))
    return rows.filter(selected), rows.exclude(selected)


def _list_groups(rows: AlertQuerySet, state: str) -> QuerySet[Any, Any]:
    """Return the ids of the groups of the alerts: open ones worst first, acknowledged ones last."""
    grouped: QuerySet[Any, Any] = rows.with_group().order_by().values("group_id")
    grouped = grouped.annotate(
        waiting=Count("pk", filter=Q(acknowledged_at__isnull=True)),
        worst=Min(WORST_FIRST),
        since=Min("opened_at"),
    )
    is_known = ExpressionWrapper(Q(waiting=0), output_field=BooleanField())
    order = (is_known, "worst", "since", "group_id") if state == OPEN else ("-since", "-group_id")
    return grouped.order_by(*order).values_list("group_id")


def _load_members(rows: AlertQuerySet, group_ids: Sequence[int]) -> list[dict[str, Any]]:
    """Return the groups, in order, with their alerts and a headline."""
    members: dict[int, list[Any]] = {group_id: [] for group_id in group_ids}
    found = rows.with_group().filter(group_id__in=group_ids)
    for one in found.order_by(ACKNOWLEDGED_LAST, WORST_FIRST, "opened_at", "pk"):
        members[one.group_id].append(one)
    return [
        {
            "id": group_id,
            "alerts": alerts,
            "headline": groups.describe_group(alerts),
            "since": min(one.opened_at for one in alerts),
            "worst": min(alerts, key=lambda one: SEVERITIES.index(one.severity)),
            "waiting": sum(one.state == OPEN for one in alerts),
        }
        for group_id, alerts in members.items()
        if alerts
    ]


def _window_rows(
    alert: Alert, reading: AlertReading, status: SloStatus | None
) -> list[dict[str, Any]]:
    """Return the figures of each window of a burn-rate rule: at the opening, and later ones.

    The later ones are those of the last evaluation, or, of a resolved alert, of the last firing.
    """
    opening = alert.evidence.get("windows") or {}
    later = alert.latest.get("windows") or {}
    if alert.resolved_at is None:
        later = _present_windows(status, reading) if status else {}
    limit = alert.evidence.get("burn_rate") or 1
    return [
        {"name": name, "opening": counts, "later": later.get(name), "limit": limit}
        for name, counts in opening.items()
    ]


def _present_windows(status: SloStatus, reading: AlertReading) -> dict[str, dict[str, Any]]:
    edges = {name: status.minute - window_minutes(name) for name in reading.rates}
    counters = budgets.load_counters([status.slo], sorted({*edges.values(), status.minute}))
    counted = counters.get(status.slo_id)
    windows = {}
    for name, start in edges.items():
        counts = counted.measure(start, status.minute) if counted else None
        windows[name] = {
            "burn_rate": reading.rates[name],
            "bad": float(counts.bad) if counts else None,
            "total": float(counts.total) if counts else None,
            "coverage": reading.coverage.get(name),
        }
    return windows


def _trip_rows(alert: Alert) -> list[dict[str, Any]]:
    """Return the alert's trip requests, each with the open episode of its switch, if any."""
    requests = alert_timeline.load_trip_requests(alert)
    rows = Episode.objects.filter(
        ended_at__isnull=True, switch__in=[one.switch for one in requests]
    )
    episodes = {one.switch_id: one for one in rows} if requests else {}
    return [{"request": one, "episode": episodes.get(one.switch)} for one in requests]


def _figure_rows(alert: Alert) -> list[dict[str, Any]]:
    """Return the evidence of a threshold rule's alert that isn't shown elsewhere, formatted."""
    if alert.kind == Alert.Kind.BURN:
        return []
    shown_elsewhere = {"value", "limit", "comparison", "samples", "stands"}
    rows: list[dict[str, Any]] = []
    for name, value in alert.evidence.items():
        begin, _, unit = name.rpartition("_")
        words, is_number = (
            WORDS.get(begin) or begin.replace("_", " "),
            isinstance(value, int | float),
        )
        if name in shown_elsewhere or not (is_number or isinstance(value, str)):
            continue
        if unit == "at" and not is_number and (at := parse_datetime(value)):
            rows.append({"name": words, "at": at})
        elif unit == "by":
            rows.append({"name": f"{words} by", "who": str(value)})
        elif unit == "percent" and is_number:
            rows.append({"name": words, "value": f"{value:g} %"})
        elif unit == "seconds" and is_number:
            lasted = durations.format_readable(timedelta(seconds=value))
            rows.append({"name": words, "value": lasted})
        else:
            shown = value if is_number else format_subject(value)
            rows.append({"name": WORDS.get(name) or name.replace("_", " "), "value": shown})
    return rows


def _clean(text: str) -> str:
    return text.replace("\x00", "").strip()[:MAX_NOTE_LENGTH]
