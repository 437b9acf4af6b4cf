"""Who is told of alarms: each in the thread of what it is about, or many of them at once."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from breakers import names
from breakers import telling as of_breakers
from breakers.alarms import rules
from breakers.models import Alarm, Dependency
from breakers.states.standing import by_name
from controlplane.core.canonical import timestamp
from controlplane.core.outbox import services as outbox

BEGUN, OVER = "breaker.alarm", "breaker.alarm_over"
MANY_BEGUN, MANY_OVER = "breakers.alarms", "breakers.alarms_over"
TOGETHER = "alarms:breakers"
"""The thread of all messages that tell of many."""
MOST_ALONE = 3
AT_ONCE = timedelta(minutes=1)
"""What begins within this time began at once."""
MOST_NAMED = 10
WORST_FIRST = ("critical", "warning", "info")


def turn(now: datetime) -> None:
    """Tell of what has begun and ended since, in the caller's transaction."""
    waiting = Alarm.objects.filter(over_told_at__isnull=True, rule__in=rules.ALL).order_by("pk")
    _tell_begun(list(waiting.filter(told_at__isnull=True)), now)
    _tell_over(list(waiting.filter(told_at__lt=now, closed_at__isnull=False)), now)


def _tell_begun(alarms: Sequence[Alarm], now: datetime) -> None:
    """A few by themselves. More of them together, at most once a minute: what begins meanwhile
    waits, and is summed up."""
    if not alarms:
        return
    lately = Alarm.objects.filter(told_at__gt=now - AT_ONCE, rule__in=rules.ALL)
    alone = lately.count() + len(alarms) <= MOST_ALONE
    if alone:
        of = _dependencies(alarms)
        for one in alarms:
            facts = {**_facts(one, of), "to_do": rules.ALL[one.rule].to_do}
            _tell(one, BEGUN, facts, one.severity, now)
    elif lately.filter(told_alone=False).exists():
        return
    else:
        _tell_many(alarms, MANY_BEGUN, now)
    _mark(alarms, told_at=now, told_alone=alone)


def _tell_over(alarms: Sequence[Alarm], now: datetime) -> None:
    """In their threads, if they were told of there and are few; else together, as above."""
    alone = [one for one in alarms if one.told_alone]
    alone = alone if len(alone) <= MOST_ALONE else []
    of = _dependencies(alone)
    for one in alone:
        _tell(one, OVER, {**_facts(one, of), "since_at": timestamp(one.since)}, "info", now)
    _mark(alone, over_told_at=now)
    together = [one for one in alarms if one not in alone]
    lately = Alarm.objects.filter(over_told_at__gt=now - AT_ONCE, told_alone=False)
    if together and not lately.exists():
        _tell_many(together, MANY_OVER, now)
        _mark(together, over_told_at=now, told_alone=False)


def _mark(alarms: Sequence[Alarm], **fields: Any) -> None:
    Alarm.objects.filter(pk__in=[one.pk for one in alarms]).update(**fields)


def path(alarm: Alarm) -> str:
    """The page of what it is about; the board for a bulkhead, which has none."""
    parts = names.parts(alarm.subject)
    return of_breakers.path(*parts) if parts else of_breakers.BOARD


def _tell(alarm: Alarm, event: str, facts: dict[str, Any], severity: str, now: datetime) -> None:
    kind = "dependency" if names.parts(alarm.subject) else "bulkhead"
    outbox.announce(
        event=event,
        event_key=f"{event}:{alarm.pk}",
        severity=severity,
        subject=of_breakers.thread(kind, alarm.subject),
        facts=facts,
        now=now,
    )


def _tell_many(alarms: Sequence[Alarm], event: str, now: datetime) -> None:
    worst_first = sorted(alarms, key=lambda one: (WORST_FIRST.index(one.severity), one.pk))
    shown = [f"{one.subject} ({one.rule.replace('_', ' ')})" for one in worst_first[:MOST_NAMED]]
    more = len(alarms) - len(shown)
    outbox.announce(
        event=event,
        event_key=f"{event}:{min(one.pk for one in alarms)}:{timestamp(now)}",
        severity="info" if event == MANY_OVER else worst_first[0].severity,
        subject=TOGETHER,
        facts={
            "count": len(alarms),
            "list": ", ".join(shown) + (f" and {more:,} more" if more else ""),
            "first_said": worst_first[0].evidence.get("said", ""),
            "path": of_breakers.BOARD,
        },
        now=now,
    )


def _dependencies(alarms: Sequence[Alarm]) -> dict[str, Dependency]:
    found = {one.subject for one in alarms if names.parts(one.subject)}
    return {one.name: one for one in by_name(found)} if found else {}


def _facts(alarm: Alarm, of: dict[str, Dependency]) -> dict[str, Any]:
    about = of.get(alarm.subject)
    known = of_breakers.facts(about) if about else {"path": path(alarm)}
    return {**known, "rule": alarm.rule, "about": alarm.subject, "said": alarm.evidence["said"]}
