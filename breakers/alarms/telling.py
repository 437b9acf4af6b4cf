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
MOST_ALONE = 3
AT_ONCE = timedelta(minutes=1)
"""What begins within this time began at once."""
MOST_NAMED = 10
WORST_FIRST = ("critical", "warning", "info")


def are_told_alone(more: int, now: datetime) -> bool:
    """Whether each of so many alarms that begin now is told of by itself."""
    if more > MOST_ALONE:
        return False
    lately = Alarm.objects.filter(since__gt=now - AT_ONCE, rule__in=rules.ALL)
    return lately.count() + more <= MOST_ALONE


def begun(alarms: Sequence[Alarm], now: datetime) -> None:
    """Tell of alarms that begin, in the caller's transaction."""
    alone = [one for one in alarms if one.evidence["told_alone"]]
    of = _dependencies(alone)
    for alarm in alone:
        to_do = rules.ALL[alarm.rule].to_do
        _tell(alarm, BEGUN, {**_facts(alarm, of), "to_do": to_do}, alarm.severity, now)
    _tell_many([one for one in alarms if one not in alone], MANY_BEGUN, now)


def ended(alarms: Sequence[Alarm], now: datetime) -> None:
    """Tell that alarms are over: in their threads, or together as they were told together."""
    alone = [one for one in alarms if one.evidence.get("told_alone")]
    alone = alone if len(alone) <= MOST_ALONE else []
    of = _dependencies(alone)
    for alarm in alone:
        _tell(alarm, OVER, {**_facts(alarm, of), "since_at": timestamp(alarm.since)}, "info", now)
    _tell_many([one for one in alarms if one not in alone], MANY_OVER, now)


def path(alarm: Alarm) -> str:
    """The page of what it is about; the board for a bulkhead, which has none."""
    parts = names.parts(alarm.subject)
    return f"{of_breakers.BOARD}{parts[0]}/{parts[1]}/" if parts else of_breakers.BOARD


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
    if not alarms:
        return
    worst_first = sorted(alarms, key=lambda one: (WORST_FIRST.index(one.severity), one.pk))
    shown = [f"{one.subject} ({one.rule.replace('_', ' ')})" for one in worst_first[:MOST_NAMED]]
    more = len(alarms) - len(shown)
    outbox.announce(
        event=event,
        event_key=f"{event}:{min(one.pk for one in alarms)}:{timestamp(now)}",
        severity="info" if event == MANY_OVER else worst_first[0].severity,
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
