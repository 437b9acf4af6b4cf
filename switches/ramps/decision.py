"""Pure rule that decides the next transition of a ramp from its step and gate results."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from controlplane.core import durations
from controlplane.core.gates.questions import FAIL, NO_DATA, PASS, WAITING


class Next(StrEnum):
    STAY = "stay"
    HOLD = "hold"
    ADVANCE = "advance"
    COMPENSATE = "compensate"


@dataclass(frozen=True)
class CurrentStep:
    """A ramp's current step; `state` is the job's state (running, holding or paused).

    `blind_since` is the time after the dwell at which a gate was first found without data.
    `held` lists reasons to hold even if all gates pass.
    """

    state: str
    dwell_until: datetime
    max_hold: timedelta
    blind_since: datetime | None = None
    held: Sequence[str] = ()


@dataclass(frozen=True)
class GateResult:
    """A gate's description, verdict and optional explanation."""

    gate: str
    verdict: str
    why: str = ""

    def __str__(self) -> str:
        return f"{self.gate}: {self.why}" if self.why else self.gate


@dataclass(frozen=True)
class RampDecision:
    """The next transition, its reason, and the new `blind_since` of the step."""

    next: Next
    why: str = ""
    blind_since: datetime | None = None


def decide(step: CurrentStep, results: Sequence[GateResult], now: datetime) -> RampDecision:
    """Return the next transition.

    A failing gate compensates the ramp at any time, even while paused. Otherwise a paused ramp
    stays, and so does a ramp within its dwell. After the dwell, the ramp holds while `held`
    lists reasons; then it advances if all gates pass, and holds otherwise. A gate without data
    for `max_hold` compensates the ramp; time during which `held` applies does not count.
    """
    failing = [one for one in results if one.verdict == FAIL]
    if failing:
        return RampDecision(Next.COMPENSATE, _explain("A gate fails", failing))
    if step.state == "paused" or now < step.dwell_until:
        return RampDecision(Next.STAY, blind_since=step.blind_since)
    if step.held:
        return RampDecision(Next.HOLD, f"Held: {'; '.join(step.held)}.")
    if all(one.verdict == PASS for one in results):
        return RampDecision(Next.ADVANCE)
    blind = [one for one in results if one.verdict == NO_DATA]
    since = (step.blind_since or now) if blind else None
    if since is not None and now - since >= step.max_hold:
        waited = durations.format_readable(step.max_hold)
        return RampDecision(Next.COMPENSATE, _explain(f"No data for {waited}", blind), since)
    waiting = [one for one in results if one.verdict == WAITING]
    parts = [_explain("No data", blind)] if blind else []
    parts += [f"Waits for {'; '.join(map(str, waiting))}."] if waiting else []
    return RampDecision(Next.HOLD, " ".join(parts), since)


def _explain(what: str, about: Sequence[GateResult]) -> str:
    return f"{what}: {'; '.join(map(str, about))}."
