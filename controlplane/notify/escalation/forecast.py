"""Forecast of an escalation's next notification, by the same rules as the escalation task."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from controlplane.core.outbox.escalation import Escalation
from controlplane.notify.targets import reach, routing

from . import engine, schedule
from .ladders import Ladder, read_ladders


@dataclass(frozen=True)
class NextNotice:
    """The next notification of an escalation, with its present recipients.

    `number` is the step's number, from 1; None for a repeat or a reminder. `who` names the targets;
    if it is empty, routes decide the recipients. `is_heard` is True if anybody would receive it.
    """

    at: datetime
    kind: schedule.Kind
    number: int | None
    who: tuple[str, ...]
    is_heard: bool


def next_notices(escalations: Sequence[Escalation], now: datetime) -> dict[int, NextNotice]:
    """Return the next notification of each open escalation, by the escalation's id."""
    open_ones = [one for one in escalations if one.closed_at is None and one.next_at]
    if not open_ones:
        return {}
    ladders = read_ladders(open_ones, now)
    with routing.cached_routing():
        return {one.pk: _next_notice(one, ladders[one.pk], now) for one in open_ones}


def _next_notice(one: Escalation, ladder: Ladder, now: datetime) -> NextNotice:
    steps, status = engine.schedule_steps(ladder), engine.escalation_status(one, ladder)
    at = max(one.next_at or now, now)
    verdict = schedule.evaluate(status, steps, at)
    if verdict.kind is None:
        at = verdict.next_at
        verdict = schedule.evaluate(status, steps, at)
    who = tuple(dict.fromkeys(ladder.rungs[index].name for index in verdict.notified))
    kind = verdict.kind or "repeat"
    number = verdict.notified[0] + 1 if kind == "step" else None
    is_heard = bool(who)
    if not is_heard:
        found = routing.find_destinations(engine.STEP, one.scope, one.severity, now, one.resource)
        is_heard = any(map(reach.is_configured, found))
    return NextNotice(at, kind, number, who, is_heard)
