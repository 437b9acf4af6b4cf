"""Alarms for job durations, step failures, step attempts and checkpoint sizes.

An alarm opens above a limit and closes below a second, lower limit.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from django.db import transaction

from controlplane.core.canonical import timestamp
from controlplane.core.escalations import services as escalation
from controlplane.core.jobs import figures, kinds
from controlplane.core.jobs.claims import MAX_CHECKPOINT_BYTES
from controlplane.core.outbox import services as outbox
from controlplane.core.outbox.escalation import Escalation

EVENT, OVER = "jobs.alarm", "jobs.alarm_over"
PREFIX = "jobs:"
MAX_SUBJECT_LENGTH = 120


@dataclass(frozen=True)
class AlarmLimit:
    """The limits of a measured value: an alarm opens above `begins` and closes below `ends`.

    A value measured from fewer than `samples` jobs or steps neither opens nor closes an alarm.
    """

    name: str
    begins: float
    ends: float
    to_do: str
    samples: int = 1


DURATION = AlarmLimit("duration", 2.0, 1.5, "Find the slow step.", samples=20)
"""Ratio of the recent P95 duration to the usual P95 duration."""
FAILURES = AlarmLimit("failures", 0.30, 0.25, "Check the errors of the failed ones.", samples=10)
ATTEMPTS = AlarmLimit("attempts", 2.0, 1.75, "Find out why it needs several attempts.", samples=10)
CHECKPOINT = AlarmLimit(
    "checkpoint",
    MAX_CHECKPOINT_BYTES,
    0.8 * MAX_CHECKPOINT_BYTES,
    "Store less in it: only the position at which to continue.",
)


@dataclass(frozen=True)
class Measurement:
    """A value measured for a job kind or one of its steps, with its alarm limit."""

    limit: AlarmLimit
    kind: str
    value: float
    description: str
    samples: int = 1
    step: str = ""

    @property
    def subject(self) -> str:
        """The alarm's subject, such as `jobs:attempts:report:make`; the step name is URL-quoted."""
        parts = [self.limit.name, self.kind, *([quote(self.step, safe="")] if self.step else [])]
        return (PREFIX + ":".join(parts))[:MAX_SUBJECT_LENGTH]

    @property
    def is_above_begin(self) -> bool:
        return self.samples >= self.limit.samples and self.value > self.limit.begins

    @property
    def is_below_end(self) -> bool:
        return self.samples >= self.limit.samples and self.value < self.limit.ends


@transaction.atomic
def update_alarms(now: datetime) -> int:
    """Open and close alarms by the current measurements; return the number of changes."""
    measurements = {measurement.subject: measurement for measurement in list_measurements(now)}
    open_alarms = Escalation.objects.filter(closed_at=None, event=EVENT)
    open_by_subject = {alarm.subject: alarm for alarm in open_alarms}
    opening = [
        measurement
        for subject, measurement in measurements.items()
        if measurement.is_above_begin and subject not in open_by_subject
    ]
    closing = [
        alarm
        for subject, alarm in open_by_subject.items()
        if subject not in measurements or measurements[subject].is_below_end
    ]
    for measurement in opening:
        escalation.open_escalation(
            subject=measurement.subject,
            event=EVENT,
            severity="warning",
            facts={
                "said": measurement.description,
                "to_do": measurement.limit.to_do,
                "path": f"/jobs/?kind={measurement.kind}",
            },
            now=now,
        )
    for alarm in closing:
        escalation.close(subject=alarm.subject, now=now)
        outbox.announce(
            event=OVER,
            event_key=f"escalation:{alarm.pk}:over",
            subject=alarm.subject,
            facts={**alarm.facts, "since_at": timestamp(alarm.opened_at)},
            now=now,
        )
    return len(opening) + len(closing)


def list_measurements(now: datetime) -> Iterator[Measurement]:
    """Yield every value to compare with an alarm limit, as measured now."""
    titles = {name: kind.title for name, kind in kinds.get_kinds().items()}
    for one in figures.measure_durations(now):
        if not one.recent or not one.usual_seconds:
            continue
        ratio = one.recent_seconds / one.usual_seconds
        description = (
            f"{titles.get(one.kind, one.kind)} takes {ratio:.1f} times as long as usual: "
            f"P95 {one.recent_seconds:,.1f} s, {one.usual_seconds:,.1f} s before"
        )
        samples = min(one.recent, one.usual)
        yield Measurement(DURATION, one.kind, ratio, description, samples)
    for step in figures.measure_steps(now):
        named = f"The step {step.step} of {titles.get(step.kind, step.kind)}"
        failed = f"{named} failed {step.failed} of {step.ended} times in 24 h (limit 30 %)"
        tried = f"{named} took {step.attempts:.1f} attempts on average in 24 h (limit 2)"
        samples = step.ended
        yield Measurement(FAILURES, step.kind, step.failure_ratio, failed, samples, step.step)
        yield Measurement(ATTEMPTS, step.kind, step.attempts, tried, samples, step.step)
    for kind, size in figures.measure_checkpoints().items():
        description = f"A checkpoint of {titles.get(kind, kind)} has {size:,} bytes (limit 10 KB)"
        yield Measurement(CHECKPOINT, kind, size, description)
