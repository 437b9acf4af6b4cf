"""Notifications of alerts: single messages for a few, one summary for many."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any

from django.db.models import Count, F, Q

from controlplane.core import runbooks
from controlplane.core.canonical import timestamp
from controlplane.core.console_urls import console_url
from controlplane.core.outbox import services as outbox
from slo.arithmetic.objective import PAGE, TICKET, describe_rule_key
from slo.models import Alert, Slo
from slo.models.alerts import SEVERITIES as SEVERITY_ORDER

ALERT_PREFIX = "alert:"
ALERT_EVENT, RESOLVED_EVENT = "slo.alert", "slo.alert_over"
ALERT_SUMMARY_EVENT, RESOLVED_SUMMARY_EVENT = "slo.alerts", "slo.alerts_over"
MISSED_SUMMARY_EVENT = "slo.alerts_missed"
SUMMARY_THREAD = "alerts:many"
"""Message thread that all summaries share."""
ALERTS_PATH = "/alerts/"
MAX_SINGLE = 3
MAX_SINGLE_CRITICAL = 5
"""Most critical alerts within `BURST` that get messages of their own, before a summary."""
BURST = timedelta(minutes=1)
"""Alerts that open within this time count as simultaneous."""
_INSTANT = timedelta(microseconds=1)
MAX_NAMED = 10
CRITICAL = "critical"
SEVERITIES = {PAGE: "critical", TICKET: "warning"}


def send_notifications(now: datetime, *, except_kind: str = "") -> None:
    """Send all due notifications of alerts opened or resolved, except those of `except_kind`."""
    rows = Alert.objects.filter(resolution_notified_at__isnull=True).exclude(kind=except_kind)
    rows = rows.filter(Q(notified_at__isnull=True) | Q(resolved_at__isnull=False))
    waiting = list(rows.select_related("slo", "threshold").order_by("pk"))
    known = [one for one in waiting if one.acknowledged_at == one.opened_at]
    # The person who caused these was notified of the cause.
    _update_rows(known, notified_at=now, resolution_notified_at=now)
    waiting = [one for one in waiting if one.acknowledged_at != one.opened_at]
    not_notified = [one for one in waiting if one.notified_at is None]
    if missed := [one for one in not_notified if one.resolved_at is not None]:
        _announce_summary(missed, MISSED_SUMMARY_EVENT, now)
        _update_rows(missed, notified_at=now, notified_alone=False, resolution_notified_at=now)
    _notify_opened([one for one in not_notified if one.resolved_at is None], now)
    _notify_resolved(
        [one for one in waiting if one.notified_at is not None and one.resolved_at is not None], now
    )


def alert_subject(alert: Alert) -> str:
    """Return `alert:<id>`, which identifies an alert in escalations, holds and the audit trail."""
    return f"{ALERT_PREFIX}{alert.pk}"


def alert_path(alert: Alert) -> str:
    return f"{ALERTS_PATH}{alert.pk}/"


def group_path(group_id: int) -> str:
    return f"{ALERTS_PATH}groups/{group_id}/"


def group_list_path(group_id: int) -> str:
    return f"{ALERTS_PATH}?group={group_id}#group-{group_id}"


def slo_path(slo: Slo) -> str:
    return f"/slos/{slo.name}/"


def alert_facts(alert: Alert) -> dict[str, Any]:
    return {
        "alert": alert.pk,
        "rule": alert.rule,
        "rule_words": describe_rule_key(alert.rule),
        "about": alert.subject,
        "service": alert.service or None,
        "said": alert.summary,
        "owner": (alert.slo.owner if alert.slo else "") or None,
        "at": timestamp(alert.opened_at),
        **alert.facts,
        "runbook": runbook_url(alert) or None,
        "path": alert_path(alert),
    }


def _notify_opened(alerts: Sequence[Alert], now: datetime) -> None:
    """Send single messages for a few alerts, critical ones first, and a summary of the rest.

    At most one summary is sent a minute; alerts that it would contain wait for a later call.
    """
    if not alerts:
        return
    # Alerts announced recently, and not yet as resolved.
    rows = Alert.objects.filter(
        resolution_notified_at__isnull=True, notified_at__range=_recent_range(now)
    )
    is_critical = Q(severity=CRITICAL)
    recent = rows.aggregate(
        critical=Count("pk", filter=is_critical & Q(notified_alone=True)),
        others=Count("pk", filter=~is_critical),
        summarized=Count("pk", filter=Q(notified_alone=False)),
    )
    critical = [one for one in alerts if one.severity == CRITICAL]
    others = [one for one in alerts if one.severity != CRITICAL]
    single = critical[: max(0, MAX_SINGLE_CRITICAL - recent["critical"])]
    summarized = critical[len(single) :]
    if not summarized and recent["others"] + len(others) <= MAX_SINGLE:
        single += others
    else:
        summarized += others
    for one in single:
        _announce(one, ALERT_EVENT, alert_facts(one), one.severity, now)
    _update_rows(single, notified_at=now, notified_alone=True)
    if summarized and not recent["summarized"]:
        _announce_summary(summarized, ALERT_SUMMARY_EVENT, now)
        _update_rows(summarized, notified_at=now, notified_alone=False)


def _recent_range(now: datetime) -> tuple[datetime, datetime]:
    """Return the range of times that counts as recent for the limit on messages.

    It ends after `now`, because clocks may be set back.
    """
    return now - BURST + _INSTANT, now + BURST


def _notify_resolved(alerts: Sequence[Alert], now: datetime) -> None:
    """Send single messages for at most `MAX_SINGLE` resolved alerts, and a summary of the others.

    An alert gets a single message only if its opening had one.
    """
    single = [one for one in alerts if one.notified_alone]
    single = single if len(single) <= MAX_SINGLE else []
    for one in single:
        more = {"since_at": timestamp(one.opened_at), "why": one.resolved_because}
        _announce(one, RESOLVED_EVENT, {**alert_facts(one), **more}, "info", now)
    _update_rows(single, resolution_notified_at=now)
    summarized = [one for one in alerts if one not in single]
    recent = Alert.objects.filter(
        resolution_notified_at__range=_recent_range(now),
        notified_alone=False,
        notified_at__lt=F("resolution_notified_at"),
    )
    if summarized and not recent.exists():
        _announce_summary(summarized, RESOLVED_SUMMARY_EVENT, now)
        _update_rows(summarized, resolution_notified_at=now, notified_alone=False)


def _update_rows(alerts: Sequence[Alert], **fields: Any) -> None:
    Alert.objects.filter(pk__in=[one.pk for one in alerts]).update(**fields)


def _announce(
    alert: Alert, event: str, facts: dict[str, Any], severity: str, now: datetime
) -> None:
    outbox.announce(
        event=event,
        event_key=f"{event}:{alert.pk}",
        severity=severity,
        subject=alert.thread or alert_subject(alert),
        resource=alert.resource,
        facts=facts,
        now=now,
    )


def _announce_summary(alerts: Sequence[Alert], event: str, now: datetime) -> None:
    worst_first = sorted(alerts, key=lambda one: (SEVERITY_ORDER.index(one.severity), one.pk))
    outbox.announce_together(
        worst_first,
        resource_of=attrgetter("resource"),
        facts_of=_summary_facts,
        event=event,
        event_key=f"{event}:{min(one.pk for one in alerts)}:{timestamp(now)}",
        severity=worst_first[0].severity if event == ALERT_SUMMARY_EVENT else "info",
        subject=SUMMARY_THREAD,
        now=now,
    )


def _summary_facts(worst_first: Sequence[Alert]) -> dict[str, Any]:
    shown = [
        f"{one.subject_label} ({describe_rule_key(one.rule)})" for one in worst_first[:MAX_NAMED]
    ]
    more = len(worst_first) - len(shown)
    return {
        "count": len(worst_first),
        "list": ", ".join(shown) + (f" and {more:,} more" if more else ""),
        "first_said": worst_first[0].summary,
        "path": ALERTS_PATH,
    }


def find_runbook(alert: Alert) -> str:
    """Return the path or URL of an alert's runbook, empty if there is none.

    The alert's facts, its SLO or its rule name the runbook. Otherwise the one that matches the
    alert best is returned.
    """
    if runbook := alert.facts.get("runbook"):
        return str(runbook)
    for source in (alert.slo, alert.threshold):
        if source is not None and source.runbook_url:
            return source.runbook_url
    name = alert.subject if alert.kind == Alert.Kind.BURN else alert.rule
    slug = runbooks.find_slug(
        service=alert.service, kind=alert.kind, name=name, subject=alert.subject
    )
    return runbooks.page_path(slug)


def runbook_url(alert: Alert) -> str:
    """Return the URL of an alert's runbook; only a path if the console's URL is not configured."""
    runbook = find_runbook(alert)
    return (console_url(runbook) or runbook) if runbook.startswith("/") else runbook
