"""Alarms about jobs: one for each figure beyond its limit, until it is well below it.

Stuck jobs and failed compensations call people at once, without figures.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

from django.db import transaction

from controlplane.core.canonical import timestamp
from controlplane.core.escalations import services as escalation
from controlplane.core.jobs import figures, kinds
from controlplane.core.jobs.claims import MAX_CHECKPOINT_BYTES
from controlplane.core.jobs.figures import Durations, StepFigures
from controlplane.core.outbox import services as outbox
from controlplane.core.outbox.escalation import Escalation

EVENT, OVER = "jobs.alarm", "jobs.alarm_over"
PREFIX = "jobs:"
MAX_SUBJECT_LENGTH = 120


@dataclass(frozen=True)
class AlarmLimit:
    """A limit: an alarm begins above `begins`, of at least `samples`, and ends below `ends`.

    In between, and with fewer samples, it stays as it is.
    """

    name: str
    begins: float
    ends: float
    to_do: str
    samples: int = 1


DURATION = AlarmLimit("duration", 2.0, 1.5, "Look which of its steps is slow.", samples=20)
"""Times the usual P95."""
FAILURES = AlarmLimit(
    "failures", 0.30, 0.25, "Look at the errors of those that failed.", samples=10
)
ATTEMPTS = AlarmLimit(
    "attempts", 2.0, 1.75, "It is unsteady: look why it is tried again.", samples=10
)
CHECKPOINT = AlarmLimit(
    "checkpoint",
    MAX_CHECKPOINT_BYTES,
    0.8 * MAX_CHECKPOINT_BYTES,
    "Keep less in it: where to go on.",
)


@dataclass(frozen=True)
class AlarmReading:
    """A figure and its limit, of a kind of jobs or of one of its steps; `said` describes it."""

    limit: AlarmLimit
    kind: str
    value: float
    said: str
    samples: int = 1
    step: str = ""

    @property
    def subject(self) -> str:
        """The subject of its alarm, such as `jobs:attempts:report:make`, URL-quoted."""
        named = [self.limit.name, self.kind, *([quote(self.step, safe="")] if self.step else [])]
        return (PREFIX + ":".join(named))[:MAX_SUBJECT_LENGTH]

    @property
    def is_beyond(self) -> bool:
        return self.samples >= self.limit.samples and self.value > self.limit.begins

    @property
    def is_well(self) -> bool:
        return self.samples >= self.limit.samples and self.value < self.limit.ends


@transaction.atomic
def update_alarms(now: datetime) -> int:
    """Begin and end alarms by the present figures; return the number of changes."""
    readings = {reading.subject: reading for reading in list_readings(now)}
    open_alarms = Escalation.objects.filter(closed_at=None, event=EVENT)
    ringing = {alarm.subject: alarm for alarm in open_alarms}
    begun = [r for r in readings.values() if r.is_beyond and r.subject not in ringing]
    ended = [
        a for a in ringing.values() if a.subject not in readings or readings[a.subject].is_well
    ]
    for reading in begun:
        escalation.open_escalation(
            subject=reading.subject,
            event=EVENT,
            severity="warning",
            facts={
                "said": reading.said,
                "to_do": reading.limit.to_do,
                "path": f"/jobs/?kind={reading.kind}",
            },
            now=now,
        )
    for alarm in ended:
        _end_alarm(alarm, now)
    return len(begun) + len(ended)


def list_readings(now: datetime) -> list[AlarmReading]:
    """Return every figure that has a limit; without recent jobs there is none."""
    titles = {name: kind.title for name, kind in kinds.get_kinds().items()}
    found = list(_read_durations(figures.measure_durations(now), titles))
    for step in figures.measure_steps(now):
        found += _read_step(step, titles)
    for kind, size in figures.measure_checkpoints().items():
        said = f"A checkpoint of {titles.get(kind, kind)} has {size:,} bytes (10 KB at most)"
        found.append(AlarmReading(CHECKPOINT, kind, size, said))
    return found


def _read_durations(
    all_kinds: Iterable[Durations], titles: Mapping[str, str]
) -> Iterable[AlarmReading]:
    for one in all_kinds:
        if not one.recent or not one.usual_seconds:
            continue
        ratio = one.recent_seconds / one.usual_seconds
        said = (
            f"{titles.get(one.kind, one.kind)} takes {ratio:.1f} times as long as usual: "
            f"P95 {one.recent_seconds:,.1f} s, {one.usual_seconds:,.1f} s before"
        )
        samples = min(one.recent, one.usual)
        yield AlarmReading(DURATION, one.kind, ratio, said, samples)


def _read_step(one: StepFigures, titles: Mapping[str, str]) -> list[AlarmReading]:
    named = f"The step {one.step} of {titles.get(one.kind, one.kind)}"
    failed = f"{named} failed {one.failed} of {one.ended} times in 24 h (30 % at most)"
    tried = f"{named} took {one.attempts:.1f} attempts on average in 24 h (2 at most)"
    of_it: dict[str, Any] = {"kind": one.kind, "step": one.step, "samples": one.ended}
    return [
        AlarmReading(FAILURES, value=one.failure_ratio, said=failed, **of_it),
        AlarmReading(ATTEMPTS, value=one.attempts, said=tried, **of_it),
    ]


def _end_alarm(alarm: Escalation, now: datetime) -> None:
    escalation.close(subject=alarm.subject, now=now)
    outbox.announce(
        event=OVER,
        event_key=f"escalation:{alarm.pk}:over",
        subject=alarm.subject,
        facts={**alarm.facts, "since_at": timestamp(alarm.opened_at)},
        now=now,
    )
