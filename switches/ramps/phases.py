"""Phases of a ramp with the error rates of the services that check its switch.

The phases before and during the engagement are the baseline for the steps.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from controlplane.core.instances.exports import load_checking_services
from controlplane.core.jobs.models import JobStep
from controlplane.core.page_registry import RAMP_ERRORS, PhaseErrors
from switches.models import Ramp

BASELINE = timedelta(minutes=30)
"""Longest part of a phase before the ramp that is compared."""


@dataclass(frozen=True)
class RampPhase:
    """A phase from `begins` to `ends` in which `percent` of the calls were allowed.

    `counts` are the bad and total events of each SLO of :attr:`RampPhases.errors`.
    """

    name: str
    percent: Any
    begins: datetime
    ends: datetime
    counts: Sequence[tuple[float, float] | None] = ()


@dataclass(frozen=True)
class RampPhases:
    """The phases of a ramp, and the errors of each SLO in them."""

    phases: Sequence[RampPhase]
    errors: Sequence[PhaseErrors]


def load_phases(ramp: Ramp, now: datetime) -> RampPhases:
    """Return the phases of a ramp until `now` or its end, and the SLOs that count them."""
    steps = JobStep.objects.filter(job=ramp.job, started_at__isnull=False).order_by("index")
    ended_at = ramp.job.finished_at or now
    phases = list_phases(ramp.episode.engaged_at, steps, ended_at)
    services = load_checking_services(ramp.switch_id)
    spans = [(phase.begins, phase.ends) for phase in phases]
    errors = [one for read in RAMP_ERRORS.functions() for one in read(services, spans)]
    counted = [
        replace(phase, counts=[one.counts[number] for one in errors])
        for number, phase in enumerate(phases)
    ]
    return RampPhases(counted, errors)


def list_phases(
    engaged_at: datetime, steps: Iterable[JobStep], ended_at: datetime
) -> list[RampPhase]:
    """Return the phases before, while engaged, and for each started step; `ended_at` is the end."""
    rows = [(step, step.started_at) for step in steps if step.started_at is not None]
    began_at = rows[0][1] if rows else ended_at
    engaged_from = max(engaged_at, began_at - BASELINE)
    phases = [
        RampPhase("Before engaging", 100, engaged_at - BASELINE, engaged_at),
        RampPhase("Engaged", 0, engaged_from, began_at),
    ]
    for step, started_at in rows:
        until = max(started_at, min(step.finished_at or ended_at, ended_at))
        name = f"Step {step.index + 1}"
        phases.append(RampPhase(name, step.data["percent"], started_at, until))
    return phases
