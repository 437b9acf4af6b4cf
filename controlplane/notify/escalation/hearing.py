"""Forecast of an escalation's next notification, by the same rules as the tick."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from controlplane.core.message_templates import SEVERITIES
from controlplane.core.outbox.escalation import Escalation
from controlplane.notify.targets import reach, routing
from controlplane.notify.targets.reach import Rung

from . import engine, schedule


@dataclass(frozen=True)
class Hearing:
    """The next notification, and its recipients as of now.

    `kind` is that of the verdict, `number` the step's (from 1) if it is a step, and `who` the names
    of those reached. Without any, the routes are used; `is_heard` says if anybody is reached.
    """

    at: datetime
    kind: schedule.Kind
    number: int | None
    who: tuple[str, ...]
    is_heard: bool


def next_of(escalations: Sequence[Escalation], now: datetime) -> dict[int, Hearing]:
    """Return the next notification of the open escalations, by their ids.

    The number of queries does not depend on the number of escalations.
    """
    open_ones = [one for one in escalations if one.closed_at is None and one.next_at]
    if not open_ones:
        return {}
    ladders = reach.ladders(SEVERITIES, now)
    with routing.reading_once():
        return {one.pk: _next(one, ladders[one.severity], now) for one in open_ones}


def _next(one: Escalation, ladder: Sequence[Rung], now: datetime) -> Hearing:
    steps, standing = engine.steps(ladder), engine.standing(one)
    at = max(one.next_at or now, now)
    verdict = schedule.judge(standing, steps, at)
    if verdict.kind is None:
        at = verdict.next_at
        verdict = schedule.judge(standing, steps, at)
    who = tuple(dict.fromkeys(ladder[index].name for index in verdict.told))
    kind = verdict.kind or "repeat"
    number = verdict.told[0] + 1 if kind == "step" else None
    return Hearing(at, kind, number, who, bool(who) or _routes_reach(one, now))


def _routes_reach(one: Escalation, now: datetime) -> bool:
    found = routing.routed(engine.STEP, one.scope, one.severity, now)
    return any(reach.configured(destination) for destination in found)
