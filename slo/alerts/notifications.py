"""Who is told of alerts: of a few one by one, of many together."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, F, Q

from controlplane.core.canonical import timestamp
from controlplane.core.outbox import services as outbox
from slo.arithmetic.objective import PAGE, TICKET
from slo.models import Alert, Slo

from . import runbooks

BEGUN, OVER = "slo.alert", "slo.alert_over"
MANY_BEGUN, MANY_OVER, MISSED = "slo.alerts", "slo.alerts_over", "slo.alerts_missed"
TOGETHER = "alerts:many"
"""The thread of all messages that tell of many."""
BOARD = "/alerts/"
MAX_ALONE = 3
MAX_CRITICAL = 5
"""Of critical ones, which nothing else stands in the way of."""
AT_ONCE = timedelta(minutes=1)
"""What begins within this time began at once."""
_INSTANT = timedelta(microseconds=1)
MAX_NAMED = 10
CRITICAL = "critical"
WORST_FIRST = (CRITICAL, "warning", "info")
SEVERITIES = {PAGE: "critical", TICKET: "warning"}


def turn(now: datetime, *, but_not: str = "") -> None:
    """Tell of what has opened and resolved since, in the caller's transaction; of one kind, if it
    is named, another time."""
    rows = Alert.objects.filter(over_told_at__isnull=True).exclude(kind=but_not)
    rows = rows.filter(Q(told_at__isnull=True) | Q(resolved_at__isnull=False))
    waiting = list(rows.select_related("slo", "threshold").order_by("pk"))
    known = [one for one in waiting if one.acknowledged_at == one.opened_at]
    # Whoever brought it about was told of as that was done, and knows how it ends.
    _mark(known, told_at=now, over_told_at=now)
    waiting = [one for one in waiting if one.acknowledged_at != one.opened_at]
    untold = [one for one in waiting if one.told_at is None]
    _tell_missed([one for one in untold if one.resolved_at is not None], now)
    _tell_begun([one for one in untold if one.resolved_at is None], now)
    _tell_over(
        [one for one in waiting if one.told_at is not None and one.resolved_at is not None], now
    )


def subject(alert: Alert) -> str:
    """What names an alert in escalations, holds and the audit trail."""
    return f"alert:{alert.pk}"


def page(alert: Alert) -> str:
    return f"{BOARD}{alert.pk}/"


def slo_page(slo: Slo) -> str:
    return f"/slos/{slo.name}/"


def facts(alert: Alert) -> dict[str, Any]:
    """What a message says of one alert."""
    return {
        "alert": alert.pk,
        "rule": alert.rule,
        "about": alert.subject,
        "service": alert.service or None,
        "said": alert.said,
        "owner": (alert.slo.owner if alert.slo else "") or None,
        "at": timestamp(alert.opened_at),
        **alert.facts,
        "runbook": runbooks.address(alert) or None,
        "path": page(alert),
    }


def _tell_begun(alerts: Sequence[Alert], now: datetime) -> None:
    """A few by themselves, and first of all critical ones. More of them together, at most once a
    minute: what opens meanwhile waits, and is summed up."""
    if not alerts:
        return
    lately = _told_lately(now)
    critical = [one for one in alerts if one.severity == CRITICAL]
    others = [one for one in alerts if one.severity != CRITICAL]
    alone = critical[: max(0, MAX_CRITICAL - lately["critical"])]
    together = critical[len(alone) :]
    if not together and lately["others"] + len(others) <= MAX_ALONE:
        alone += others
    else:
        together += others
    for one in alone:
        _tell(one, BEGUN, facts(one), one.severity, now)
    _mark(alone, told_at=now, told_alone=True)
    if together and not lately["together"]:
        _tell_many(together, MANY_BEGUN, now)
        _mark(together, told_at=now, told_alone=False)


def _told_lately(now: datetime) -> dict[str, int]:
    """How many of those that opened were told of just now. What nobody was told of by itself, as it
    came and went or as somebody knew, has an end that was told as well."""
    rows = Alert.objects.filter(over_told_at__isnull=True, told_at__range=_just_now(now))
    is_critical = Q(severity=CRITICAL)
    return rows.aggregate(
        critical=Count("pk", filter=is_critical & Q(told_alone=True)),
        others=Count("pk", filter=~is_critical),
        together=Count("pk", filter=Q(told_alone=False)),
    )


def _just_now(now: datetime) -> tuple[datetime, datetime]:
    """What is further ahead is from before the clock was set back."""
    return now - AT_ONCE + _INSTANT, now + AT_ONCE


def _tell_over(alerts: Sequence[Alert], now: datetime) -> None:
    """In their threads, if they were told of there and are few; else together, as above."""
    alone = [one for one in alerts if one.told_alone]
    alone = alone if len(alone) <= MAX_ALONE else []
    for one in alone:
        more = {"since_at": timestamp(one.opened_at), "why": one.resolved_because}
        _tell(one, OVER, {**facts(one), **more}, "info", now)
    _mark(alone, over_told_at=now)
    together = [one for one in alerts if one not in alone]
    lately = Alert.objects.filter(
        over_told_at__range=_just_now(now), told_alone=False, told_at__lt=F("over_told_at")
    )
    if together and not lately.exists():
        _tell_many(together, MANY_OVER, now)
        _mark(together, over_told_at=now, told_alone=False)


def _tell_missed(alerts: Sequence[Alert], now: datetime) -> None:
    """What came and went while nobody judged: said once, and nobody is called."""
    if alerts:
        _tell_many(alerts, MISSED, now)
        _mark(alerts, told_at=now, told_alone=False, over_told_at=now)


def _mark(alerts: Sequence[Alert], **fields: Any) -> None:
    Alert.objects.filter(pk__in=[one.pk for one in alerts]).update(**fields)


def _tell(alert: Alert, event: str, said: dict[str, Any], severity: str, now: datetime) -> None:
    outbox.announce(
        event=event,
        event_key=f"{event}:{alert.pk}",
        severity=severity,
        subject=alert.thread or subject(alert),
        facts=said,
        now=now,
    )


def _tell_many(alerts: Sequence[Alert], event: str, now: datetime) -> None:
    worst_first = sorted(alerts, key=lambda one: (WORST_FIRST.index(one.severity), one.pk))
    shown = [f"{one.subject} ({one.rule})" for one in worst_first[:MAX_NAMED]]
    more = len(alerts) - len(shown)
    outbox.announce(
        event=event,
        event_key=f"{event}:{min(one.pk for one in alerts)}:{timestamp(now)}",
        severity=worst_first[0].severity if event == MANY_BEGUN else "info",
        subject=TOGETHER,
        facts={
            "count": len(alerts),
            "list": ", ".join(shown) + (f" and {more:,} more" if more else ""),
            "first_said": worst_first[0].said,
            "path": BOARD,
        },
        now=now,
    )
