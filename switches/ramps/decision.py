"""What a ramp does next: from how its step stands and what its gates say. Pure."""

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
class Standing:
    """How the present step stands: `state` is that of the job (running, holding, paused).

    `blind_since`: since when, past its dwell, a gate has had no data. `held` says what holds it
    whatever its gates say.
    """

    state: str
    dwell_until: datetime
    max_hold: timedelta
    blind_since: datetime | None = None
    held: Sequence[str] = ()


@dataclass(frozen=True)
class Seen:
    """What one gate says: its name in words, the verdict, and why, if it says so."""

    gate: str
    verdict: str
    why: str = ""

    def __str__(self) -> str:
        return f"{self.gate}: {self.why}" if self.why else self.gate


@dataclass(frozen=True)
class Decision:
    """What to do, why, and since when the ramp is blind from now on."""

    next: Next
    why: str = ""
    blind_since: datetime | None = None


def decide(standing: Standing, seen: Sequence[Seen], now: datetime) -> Decision:
    """A failing gate ends the ramp at any time, and also while it is paused; nothing else happens
    before the dwell is over. Then all have to pass. Without data it holds, for so long; for a
    person it holds as long as that gate itself waits, and while something holds it, without limit:
    only after that does the time without data begin."""
    failing = [one for one in seen if one.verdict == FAIL]
    if failing:
        return Decision(Next.COMPENSATE, _told("A gate fails", failing))
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
        return Decision(Next.COMPENSATE, _told(f"No data for {waited}", blind), since)
    waiting = [one for one in seen if one.verdict == WAITING]
    parts = [_told("No data", blind)] if blind else []
    parts += [f"Waits for {'; '.join(map(str, waiting))}."] if waiting else []
    return Decision(Next.HOLD, " ".join(parts), since)


def _told(what: str, about: Sequence[Seen]) -> str:
    return f"{what}: {'; '.join(map(str, about))}."
