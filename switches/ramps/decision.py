"""The next transition of a ramp, decided from its step and the answers of its gates. Pure."""

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
    """The current step: `state` is that of the job (running, holding, paused).

    `blind_since` is the time since which, past the dwell, a gate has had no data. `held` lists
    reasons to hold whatever the gates answer.
    """

    state: str
    dwell_until: datetime
    max_hold: timedelta
    blind_since: datetime | None = None
    held: Sequence[str] = ()


@dataclass(frozen=True)
class GateResult:
    """The answer of one gate: its name in words, the verdict, and an explanation or none."""

    gate: str
    verdict: str
    why: str = ""

    def __str__(self) -> str:
        return f"{self.gate}: {self.why}" if self.why else self.gate


@dataclass(frozen=True)
class Decision:
    """The next transition, its reason, and the time since which the ramp is without data."""

    next: Next
    why: str = ""
    blind_since: datetime | None = None


def decide(standing: CurrentStep, seen: Sequence[GateResult], now: datetime) -> Decision:
    """Return the next transition.

    A failing gate ends the ramp at any time, even while it is paused. Otherwise nothing happens
    before the dwell is over; then all gates have to pass. Without data the ramp holds, at most for
    `max_hold`. It waits for a person as long as that gate allows, and for holds without limit; the
    time without data begins after them.
    """
    failing = [one for one in seen if one.verdict == FAIL]
    if failing:
        return Decision(Next.COMPENSATE, _explain("A gate fails", failing))
    if standing.state == "paused" or now < standing.dwell_until:
        return Decision(Next.STAY, blind_since=standing.blind_since)
    if standing.held:
        return Decision(Next.HOLD, f"Held: {'; '.join(standing.held)}.")
    if all(one.verdict == PASS for one in seen):
        return Decision(Next.ADVANCE)
    blind = [one for one in seen if one.verdict == NO_DATA]
    since = (standing.blind_since or now) if blind else None
    if since is not None and now - since >= standing.max_hold:
        waited = durations.readable(standing.max_hold)
        return Decision(Next.COMPENSATE, _explain(f"No data for {waited}", blind), since)
    waiting = [one for one in seen if one.verdict == WAITING]
    parts = [_explain("No data", blind)] if blind else []
    parts += [f"Waits for {'; '.join(map(str, waiting))}."] if waiting else []
    return Decision(Next.HOLD, " ".join(parts), since)


def _explain(what: str, about: Sequence[GateResult]) -> str:
    return f"{what}: {'; '.join(map(str, about))}."
