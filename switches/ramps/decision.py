"""Decision on the next transition of a ramp, from its step and gate results."""

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
    """A ramp's current step; `state` is the state of its job: running, holding or paused.

    `blind_since` is the time since which a gate has had no data, at the earliest the end of the
    dwell. `held` lists reasons to hold the ramp even if all gates pass.
    """

    state: str
    dwell_until: datetime
    max_hold: timedelta
    blind_since: datetime | None = None
    held: Sequence[str] = ()


@dataclass(frozen=True)
class GateResult:
    """A gate's finding as text, and its verdict."""

    text: str
    verdict: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class RampDecision:
    """A ramp's next transition with its reason, and the time since which a gate has had no data."""

    next: Next
    why: str = ""
    blind_since: datetime | None = None


def decide(step: CurrentStep, results: Sequence[GateResult], now: datetime) -> RampDecision:
    """Return the next transition of a ramp.

    A failing gate compensates the ramp, even a paused one. Otherwise the ramp stays while it is
    paused or in its dwell. After the dwell it holds while `held` lists reasons, advances if all
    gates pass, and holds if a gate waits or has no data. A gate without data for `max_hold`
    compensates the ramp; time during which `held` applies does not count.
    """
    failing = [result for result in results if result.verdict == FAIL]
    if failing:
        return RampDecision(Next.COMPENSATE, _explain("A gate failed", failing))
    if step.state == "paused" or now < step.dwell_until:
        return RampDecision(Next.STAY, blind_since=step.blind_since)
    if step.held:
        return RampDecision(Next.HOLD, f"Held: {'; '.join(step.held)}.")
    if all(result.verdict == PASS for result in results):
        return RampDecision(Next.ADVANCE)
    blind = [result for result in results if result.verdict == NO_DATA]
    since = (step.blind_since or now) if blind else None
    if since is not None and now - since >= step.max_hold:
        waited = durations.format_readable(step.max_hold)
        return RampDecision(Next.COMPENSATE, _explain(f"No data for {waited}", blind), since)
    waiting = [result for result in results if result.verdict == WAITING]
    parts = [_explain("No data", blind)] if blind else []
    parts += [f"Waiting for {'; '.join(map(str, waiting))}."] if waiting else []
    return RampDecision(Next.HOLD, " ".join(parts), since)


def _explain(what: str, about: Sequence[GateResult]) -> str:
    return f"{what}: {'; '.join(map(str, about))}."
