"""The schedule of an escalation: when to notify which steps. Pure.

A step is notified at its time, or at once if the previous step reaches nobody. After the last step,
everybody reached so far is notified again every `REPEAT`. An acknowledgement stops notifications
for 24 hours; then one reminder is sent each day.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from controlplane.core.escalations.services import QUIET_PERIOD

# Info may wait for the next working day.
REPEAT = {
    "critical": timedelta(hours=1),
    "warning": timedelta(hours=1),
    "info": timedelta(days=1),
}
# Repeats due within this time are sent together: half their interval, so that those of many
# escalations align to two moments an hour at most. The first reminder after an acknowledgement is
# never early.
TAKEN_ALONG = timedelta(minutes=30)
REMINDER_TAKEN_ALONG = timedelta(hours=12)

Kind = Literal["step", "repeat", "reminder"]


@dataclass(frozen=True)
class ScheduledStep:
    """A step due `after` its escalation opened; `reaches` is True if it has recipients now."""

    after: timedelta
    reaches: bool


@dataclass(frozen=True)
class EscalationStatus:
    """The state of an escalation, from which its schedule follows.

    `step` is the index of the next step; `reached` is True once a step has notified somebody.
    """

    severity: str
    opened_at: datetime
    step: int = 0
    reached: bool = False
    notified_at: datetime | None = None
    acknowledged_at: datetime | None = None


@dataclass(frozen=True)
class ScheduleDecision:
    """The notification that an escalation needs at a moment; `kind` is None if none is due.

    `notified` are the indexes of the steps to notify; if empty, routes decide the recipients.
    `step` is the index of the next step, and `next_at` the time of the next check.
    """

    kind: Kind | None
    notified: tuple[int, ...]
    step: int
    next_at: datetime


def evaluate(
    status: EscalationStatus, steps: Sequence[ScheduledStep], now: datetime
) -> ScheduleDecision:
    """Return what is due at `now`, and when to check next; missed steps are notified together."""
    if (acknowledged_at := status.acknowledged_at) is not None:
        due_at = max(acknowledged_at, status.notified_at or acknowledged_at) + QUIET_PERIOD
        if due_at > now:
            return ScheduleDecision(None, (), status.step, due_at)
        return repeat_now(status, steps, now)
    # If only the routes were notified, start with the first step once any step reaches somebody.
    at = min(status.step, len(steps)) if status.reached else 0
    due = _count_due(status.opened_at, steps, at, now)
    notified = tuple(index for index in range(at, due) if steps[index].reaches)
    if notified:
        next_at = now + REPEAT[status.severity]
        if any(step.reaches for step in steps[due:]):
            next_at = max(now, status.opened_at + steps[due].after)
        return ScheduleDecision("step", notified, due, next_at)
    if any(step.reaches for step in steps[due:]):
        return ScheduleDecision(None, (), due, status.opened_at + steps[due].after)
    repeat_at = (status.notified_at or status.opened_at) + REPEAT[status.severity]
    if status.notified_at is None or repeat_at <= now:
        notified = _list_reached(steps, due)
        return ScheduleDecision("repeat", notified, due, now + REPEAT[status.severity])
    return ScheduleDecision(None, (), due, repeat_at)


def may_send_early(status: EscalationStatus, now: datetime, next_at: datetime) -> bool:
    """Return True if a repeat or a reminder due at `next_at` may be sent now, with others."""
    if status.notified_at is None:
        return False
    if status.acknowledged_at is None:
        return next_at - now <= TAKEN_ALONG
    was_reminded = status.notified_at >= status.acknowledged_at + QUIET_PERIOD
    return was_reminded and next_at - now <= REMINDER_TAKEN_ALONG


def is_repeat(status: EscalationStatus, steps: Sequence[ScheduledStep]) -> bool:
    """Return True if the next notification is a repeat or a reminder, not a step."""
    if status.acknowledged_at is not None:
        return True
    left = steps[status.step if status.reached else 0 :]
    return status.notified_at is not None and not any(step.reaches for step in left)


def repeat_now(
    status: EscalationStatus, steps: Sequence[ScheduledStep], now: datetime
) -> ScheduleDecision:
    """Return the decision to notify again, now, everybody reached so far."""
    notified = _list_reached(steps, min(status.step, len(steps)))
    if status.acknowledged_at is not None:
        return ScheduleDecision("reminder", notified, status.step, now + QUIET_PERIOD)
    return ScheduleDecision("repeat", notified, status.step, now + REPEAT[status.severity])


def _count_due(opened_at: datetime, steps: Sequence[ScheduledStep], at: int, now: datetime) -> int:
    """Return the index of the first step, from `at` on, that is not due yet.

    It is the number of steps if all are due. If a step reaches nobody, the next step that reaches
    somebody is due at once.
    """
    owed = False
    while at < len(steps) and (owed or opened_at + steps[at].after <= now):
        if steps[at].reaches:
            owed = False
        elif any(step.reaches for step in steps[at + 1 :]):
            owed = True
        at += 1
    return at


def _list_reached(steps: Sequence[ScheduledStep], before: int) -> tuple[int, ...]:
    """Return the indexes of the steps before `before` that reach somebody.

    If none of them does, return the index of the first of all steps that reaches somebody.
    """
    so_far = tuple(index for index in range(before) if steps[index].reaches)
    if so_far:
        return so_far
    return next(((index,) for index, step in enumerate(steps) if step.reaches), ())
