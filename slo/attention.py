"""SLOs and alerts in the console's list of what needs attention."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet, Subquery
from django.urls import reverse

from controlplane.core.actions import Action
from controlplane.core.durations import format_readable
from controlplane.core.page_registry import AttentionAction, AttentionItem, attention_rows
from controlplane.core.threshold_metrics import find_metric
from slo.alerts import groups, notifications
from slo.arithmetic.minutes import end_of
from slo.dashboard import data_gaps
from slo.dashboard.data_gaps import TrafficBlocker
from slo.evaluation import alert_readings
from slo.models import Alert, EvaluatedMinute, Sli, Slo, SloStatus
from slo.models.alerts import WORST_FIRST
from slo.objectives.permissions import SCOPE

MAX_ITEMS = 100
MAX_READ = 2000
MAX_NAMED = 3
LONG_UNKNOWN = timedelta(hours=1)
STOPPED_AFTER = timedelta(minutes=5)
"""Time since the last evaluated minute after which evaluation counts as stopped."""


def _find_alerts(_now: datetime) -> QuerySet[Alert]:
    rows = Alert.objects.filter(resolved_at__isnull=True, acknowledged_at__isnull=True)
    grouped = rows.with_group().select_related("slo__status", "threshold")
    return grouped.order_by(WORST_FIRST, "opened_at", "pk")[:MAX_READ]


def _find_unread_sources(_now: datetime) -> QuerySet[Sli]:
    rows = Sli.objects.filter(slo__removed_at__isnull=True, slo__isnull=False)
    rows = rows.exclude(source_error="").select_related("slo")
    return rows.order_by("source_error_since", "pk")[:MAX_ITEMS]


def _find_long_unknown(now: datetime) -> QuerySet[SloStatus]:
    rows = SloStatus.objects.filter(
        slo__removed_at__isnull=True, state="unknown", since__lte=now - LONG_UNKNOWN
    )
    # Rules that are still ok can fire; only new samples are missing.
    rows = rows.filter(Q(rules=[]) | Q(rules__contains=[{"state": "unknown"}]))
    return rows.select_related("slo").order_by("since", "pk")[:MAX_ITEMS]


def _find_exhausted(_now: datetime) -> QuerySet[SloStatus]:
    rows = SloStatus.objects.filter(slo__removed_at__isnull=True, remaining_ratio__lte=0)
    return rows.select_related("slo").order_by("remaining_ratio", "pk")[:MAX_ITEMS]


def _find_oldest_slo(_now: datetime) -> QuerySet[Any, Any]:
    last = Subquery(EvaluatedMinute.objects.order_by("-minute").values("minute")[:1])
    rows = Slo.objects.present().annotate(last=last).order_by("created_at")
    return rows.values("created_at", "last")[:1]


@attention_rows(7, _find_alerts, _find_long_unknown)
def list_alerts_and_gaps(
    now: datetime, alerts: Sequence[Any], unknown: Sequence[SloStatus]
) -> Sequence[AttentionItem]:
    """Return an item per group of unacknowledged alerts, and per SLO without data for an hour.

    Alerts whose subjects have other items are left out. The two kinds share the look-up of the
    switches that may block an SLO's traffic.
    """
    grouped = _group_alerts(alerts, now)
    readings = [alert_readings.read_alert(members[0], now) for members in grouped]
    silent = {one.slo: one.since for one in unknown}
    for members, reading in zip(grouped, readings, strict=True):
        if members[0].slo and reading.no_data_since:
            silent[members[0].slo] = reading.no_data_since
    blockers = data_gaps.find_blockers(silent)
    return [
        *(
            _build_alerts_item(
                members, reading.sentence, blockers.get(members[0].slo_id or 0, ()), now
            )
            for members, reading in zip(grouped, readings, strict=True)
        ),
        *(_build_gap_item(one, blockers.get(one.slo.pk, ()), now) for one in unknown),
    ]


def _group_alerts(alerts: Sequence[Any], now: datetime) -> list[list[Any]]:
    """Return the alerts in groups, worst first, without those whose subjects have other items."""
    listed = {
        (rule.name, subject)
        for rule in {one.threshold for one in alerts if one.threshold is not None}
        if (known := find_metric(rule.metric)) is not None and known[0].waiting is not None
        for subject in known[0].waiting(now)
    }
    grouped: dict[int, list[Any]] = defaultdict(list)
    for one in alerts:
        if (one.rule, one.subject) not in listed:
            grouped[one.group_id].append(one)
    return [*grouped.values()][:MAX_ITEMS]


def _build_alerts_item(
    members: Sequence[Any], reading: str, blockers: Sequence[TrafficBlocker], now: datetime
) -> AttentionItem:
    worst, is_group = members[0], len(members) > 1
    path = notifications.alert_path(worst)
    if is_group:
        summaries = [f"{one.summary}." for one in members[:MAX_NAMED]]
        rest = len(members) - len(summaries)
        detail = [*summaries, f"And {rest} more." if rest else ""]
    else:
        to_do = str(worst.facts.get("to_do") or "Acknowledge the alert to pause its escalation.")
        detail = [reading, *(one.sentence for one in blockers), to_do]
    acknowledge_path = notifications.group_path(worst.group_id) if is_group else path
    return AttentionItem(
        kind="slo_alert",
        severity=worst.severity,
        title=groups.describe_group(members) if is_group else worst.summary,
        detail=" ".join(filter(None, detail)),
        path=notifications.group_list_path(worst.group_id) if is_group else path,
        since=min(now, *(one.opened_at for one in members)),
        actions=(
            AttentionAction(
                f"Acknowledge all {len(members)}…" if is_group else "Acknowledge…",
                f"{acknowledge_path}acknowledge/",
                SCOPE,
                "eye",
                authority=Action.EXTEND,
            ),
        ),
        subjects=tuple(notifications.alert_subject(one) for one in members),
        resource=worst.resource,
        changes_path=f"{path}#changes",
    )


def _build_gap_item(
    status: SloStatus, blockers: Sequence[TrafficBlocker], now: datetime
) -> AttentionItem:
    lasted = format_readable(now - status.since)
    effect = f"For {lasted}: its rules can't fire, and ramps that it gates are held."
    return AttentionItem(
        kind="slo_unknown",
        severity="warning" if status.slo.rules else "info",
        title=f"{status.slo.name} has no data",
        detail=" ".join([effect, *(one.sentence for one in blockers)]),
        path=notifications.slo_path(status.slo),
        since=min(status.since, now),
        resource=f"slo:{status.slo.name}",
    )


@attention_rows(42, _find_unread_sources)
def list_unread_sources(now: datetime, found: Sequence[Sli]) -> Sequence[AttentionItem]:
    """Return items for SLOs whose counters could not be read from Prometheus at the last try."""
    return [
        AttentionItem(
            kind="slo_source",
            severity="warning",
            title=f"The source of {one.slo.name} can't be read",
            detail=one.source_error,
            path=notifications.slo_path(one.slo),
            since=min(one.source_error_since or now, now),
            resource=f"slo:{one.slo.name}",
        )
        for one in found
        if one.slo
    ]


@attention_rows(34, _find_exhausted)
def list_exhausted(now: datetime, found: Sequence[SloStatus]) -> Sequence[AttentionItem]:
    """Return items for SLOs whose error budget is spent."""
    return [
        AttentionItem(
            kind="slo_budget",
            severity="warning",
            title=f"The error budget of {one.slo.name} is spent",
            detail=f"{1 - (one.remaining_ratio or 0):.0%} of the budget for {one.slo.window_days} "
            f"days was spent at {end_of(one.minute):%H:%M} UTC. Put reliability before features "
            "until it recovers.",
            path=notifications.slo_path(one.slo),
            since=min(one.since, now),
            resource=f"slo:{one.slo.name}",
        )
        for one in found
    ]


@attention_rows(6, _find_oldest_slo)
def list_evaluation_stopped(
    now: datetime, found: Sequence[Mapping[str, Any]]
) -> Sequence[AttentionItem]:
    """Return one item if SLOs are no longer evaluated, else none."""
    if not found:
        return []
    since, minute = found[0]["created_at"], found[0]["last"]
    since = since if minute is None else max(since, end_of(minute))
    if now - since < STOPPED_AFTER:
        return []
    return [
        AttentionItem(
            kind="slo_unjudged",
            severity="critical",
            title="SLOs are not evaluated",
            detail=f"No rule could fire for {format_readable(now - since)}. Check that the worker, "
            "beat and the watchdog run.",
            path=reverse("slos_page"),
            since=since,
        )
    ]
