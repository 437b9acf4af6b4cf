"""SLOs and alerts in the console's list of what needs attention."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import QuerySet, Subquery
from django.urls import reverse

from controlplane.core.durations import format_readable
from controlplane.core.page_registry import AttentionItem, attention_source
from controlplane.core.threshold_metrics import find_metric
from slo.alerts import notifications
from slo.arithmetic.minutes import end_of
from slo.dashboard import data_gaps
from slo.evaluation import alert_readings
from slo.models import Alert, EvaluatedMinute, Sli, Slo, SloStatus, ThresholdRule
from slo.models.alerts import WORST_FIRST

MAX_ITEMS = 100
LONG_UNKNOWN = timedelta(hours=1)
STOPPED_AFTER = timedelta(minutes=5)
"""Time since the last evaluated minute after which evaluation counts as stopped."""


def unacknowledged_alerts(_now: datetime) -> QuerySet[Alert]:
    return Alert.objects.filter(resolved_at__isnull=True, acknowledged_at__isnull=True)


def unread_slis(_now: datetime) -> QuerySet[Sli]:
    return Sli.objects.filter(slo__removed_at__isnull=True).exclude(source_error="")


def long_unknown_statuses(now: datetime) -> QuerySet[SloStatus]:
    return SloStatus.objects.filter(
        slo__removed_at__isnull=True, state="unknown", since__lte=now - LONG_UNKNOWN
    )


def exhausted_statuses(_now: datetime) -> QuerySet[SloStatus]:
    return SloStatus.objects.filter(slo__removed_at__isnull=True, remaining_ratio__lte=0)


@attention_source(7, only_if=unacknowledged_alerts)
def list_alerts(now: datetime) -> Sequence[AttentionItem]:
    """Return items for unacknowledged alerts, unless the subject has other items already."""
    alerts = unacknowledged_alerts(now)
    for rule in ThresholdRule.objects.filter(pk__in=alerts.values("threshold_id")):
        known = find_metric(rule.metric)
        if known is not None and known[0].waiting is not None:
            alerts = alerts.exclude(rule=rule.name, subject__in=list(known[0].waiting(now)))
    rows = alerts.select_related("slo__status").order_by(WORST_FIRST, "opened_at", "pk")[:MAX_ITEMS]
    readings = [(one, alert_readings.read_alert(one, now)) for one in rows]
    blockers = data_gaps.find_blockers(
        {
            one.slo: reading.no_data_since
            for one, reading in readings
            if one.slo and reading.no_data_since
        }
    )
    return [
        AttentionItem(
            kind="slo_alert",
            severity=one.severity,
            title=one.summary.replace("->", " → "),
            detail=" ".join(
                [
                    reading.sentence,
                    *(blocker.sentence for blocker in blockers.get(one.slo_id or 0, ())),
                    str(one.facts.get("to_do") or "Acknowledge the alert to pause its escalation."),
                ]
            ),
            path=notifications.alert_path(one),
            since=min(one.opened_at, now),
        )
        for one, reading in readings
    ]


@attention_source(42, only_if=unread_slis)
def list_unread_sources(now: datetime) -> Sequence[AttentionItem]:
    """Return items for SLOs whose counters could not be read from Prometheus at the last try."""
    rows = unread_slis(now).exclude(slo__isnull=True).select_related("slo")
    return [
        AttentionItem(
            kind="slo_source",
            severity="warning",
            title=f"The source of {one.slo.name} can't be read",
            detail=one.source_error,
            path=notifications.slo_path(one.slo),
            since=min(one.source_error_since or now, now),
        )
        for one in rows.order_by("source_error_since", "pk")[:MAX_ITEMS]
        if one.slo
    ]


@attention_source(44, only_if=long_unknown_statuses)
def list_long_unknown(now: datetime) -> Sequence[AttentionItem]:
    """Return items for SLOs that have been unknown for an hour, so that no rule can fire."""
    rows = long_unknown_statuses(now).select_related("slo").order_by("since", "pk")[:MAX_ITEMS]
    blockers = data_gaps.find_blockers({one.slo: one.since for one in rows})
    return [
        AttentionItem(
            kind="slo_unknown",
            severity="warning" if one.slo.rules else "info",
            title=f"{one.slo.name} has no data",
            detail=" ".join(
                [
                    f"For {format_readable(now - one.since)}: its rules can't fire, and ramps that "
                    "it gates are held.",
                    *(blocker.sentence for blocker in blockers.get(one.slo.pk, ())),
                ]
            ),
            path=notifications.slo_path(one.slo),
            since=min(one.since, now),
        )
        for one in rows
    ]


@attention_source(34, only_if=exhausted_statuses)
def list_exhausted(now: datetime) -> Sequence[AttentionItem]:
    """Return items for SLOs whose error budget is spent."""
    rows = exhausted_statuses(now)
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
        )
        for one in rows.select_related("slo").order_by("remaining_ratio", "pk")[:MAX_ITEMS]
    ]


@attention_source(6, only_if=lambda _now: Slo.objects.present())
def list_evaluation_stopped(now: datetime) -> Sequence[AttentionItem]:
    """Return one item if SLOs are no longer evaluated, else none."""
    last = Subquery(EvaluatedMinute.objects.order_by("-minute").values("minute")[:1])
    oldest = (
        Slo.objects.present()
        .annotate(last=last)
        .order_by("created_at")
        .values_list("created_at", "last")
        .first()
    )
    if oldest is None:
        return []
    since, minute = oldest
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
