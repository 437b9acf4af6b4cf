"""Phases of a ramp with the error rates of the services that check its switch.

The phases before and during the engagement are the baseline for the steps.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Max

from controlplane.core.instances.exports import load_checking_services
from controlplane.core.jobs.models import JobStep
from controlplane.core.page_registry import RAMP_ERRORS, PhaseErrors
from switches.models import Episode, Ramp

from . import plan as plans

BASELINE = timedelta(minutes=30)
"""Longest part of a phase before the ramp that is compared."""
MINUTE = timedelta(minutes=1)
"""Events are counted in whole minutes."""


@dataclass(frozen=True)
class RampPhase:
    """A phase from `begins` to `ends` in which `percent` of the calls were allowed.

    `by_slo` has the label of each SLO of :attr:`RampPhases.errors` with its bad and total events.
    An empty phase, which has no whole minute, has a `note` that says why.
    """

    name: str
    percent: Any
    begins: datetime
    ends: datetime
    by_slo: Sequence[tuple[str, tuple[float, float] | None]] = ()
    note: str = ""

    @property
    def has_full_minute(self) -> bool:
        """Return True if events can be counted in the phase: by the minute, from :00 to :00."""
        return _ceil_minute(self.begins) + MINUTE <= self.ends


@dataclass(frozen=True)
class RampPhases:
    """The phases of a ramp, and the errors of each SLO in them."""

    phases: Sequence[RampPhase]
    errors: Sequence[PhaseErrors]


def load_phases(ramp: Ramp, now: datetime) -> RampPhases:
    """Return the phases of a ramp until `now` or its end, and the SLOs that count them."""
    steps = JobStep.objects.filter(job=ramp.job, started_at__isnull=False).order_by("index")
    ended_at = ramp.job.finished_at or now
    engaged_at = ramp.episode.engaged_at
    earlier = Episode.objects.filter(switch_id=ramp.switch_id, ended_at__lte=engaged_at)
    ramps = Ramp.objects.filter(episode_id=ramp.episode_id, pk__lt=ramp.pk)
    phases = list_phases(
        engaged_at,
        steps,
        ended_at,
        previous_engagement_end=earlier.aggregate(at=Max("ended_at"))["at"],
        previous_ramp_end=ramps.aggregate(at=Max("job__finished_at"))["at"],
    )
    services = load_checking_services(ramp.switch_id)
    spans = [(phase.begins, phase.ends) for phase in phases]
    gate_slos = plans.list_slos(ramp.plan)
    errors = [one for read in RAMP_ERRORS.functions() for one in read(services, gate_slos, spans)]
    counted = [
        replace(phase, by_slo=[(_label(one), one.counts[number]) for one in errors])
        for number, phase in enumerate(phases)
    ]
    return RampPhases(counted, errors)


def _label(slo: PhaseErrors) -> str:
    return f"{slo.name} (gate)" if slo.is_gate else slo.name


def list_phases(
    engaged_at: datetime,
    steps: Iterable[JobStep],
    ended_at: datetime,
    *,
    previous_engagement_end: datetime | None = None,
    previous_ramp_end: datetime | None = None,
) -> list[RampPhase]:
    """Return the phases before, while engaged, and for each started step; `ended_at` is the end.

    The first phase starts no earlier than the end of the previous engagement, and the engaged phase
    no earlier than the end of the episode's previous ramp. If less than a whole minute remains, the
    phase is empty.
    """
    rows = [(step, step.started_at) for step in steps if step.started_at is not None]
    began_at = rows[0][1] if rows else ended_at
    before_from = _find_phase_start(engaged_at - BASELINE, previous_engagement_end, engaged_at)
    engaged_from = _find_phase_start(
        max(engaged_at, began_at - BASELINE), previous_ramp_end, began_at
    )
    before = RampPhase("Before engaging", 100, before_from, engaged_at)
    engaged = RampPhase("Engaged", 0, engaged_from, began_at)
    if previous_engagement_end and before_from == engaged_at:
        before = replace(before, note="no full minute after the previous engagement")
    if previous_ramp_end and engaged_from == began_at:
        engaged = replace(engaged, note="no full minute after the previous ramp")
    phases = [before, engaged]
    for step, started_at in rows:
        until = max(started_at, min(step.finished_at or ended_at, ended_at))
        name = f"Step {step.index + 1}"
        phases.append(RampPhase(name, step.data["percent"], started_at, until))
    return phases


def _find_phase_start(begin: datetime, earliest: datetime | None, end: datetime) -> datetime:
    if earliest is None or earliest <= begin:
        return begin
    # Skip the rest of that minute, because a minute's counts can't be split.
    begin = _ceil_minute(earliest)
    return begin if begin + MINUTE <= end else end


def _ceil_minute(at: datetime) -> datetime:
    minute = at.replace(second=0, microsecond=0)
    return minute if minute == at else minute + MINUTE
