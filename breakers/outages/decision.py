"""Decisions on when an outage begins, is acted upon, and ends.

Pure. Only open breakers begin an outage. Half-open breakers, forced breakers and silent instances
prolong it. `open_share` is relative to all instances, including those with a forced breaker.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

TRIP, FALLBACK = "trip", "fallback"
DEFAULT_OPEN_SHARE = 0.5
DEFAULT_FOR_SECONDS = 30
DEFAULT_EXPIRES_IN = "1h"
FORGET_AFTER = timedelta(minutes=5)
"""Time without reports after which an outage ends."""


@dataclass(frozen=True)
class OutagePolicy:
    """The action to take when breakers are open in many instances.

    They must be open in the share `open_share` (0 to 1) of the instances for `for_seconds`. The
    action `trip` engages `switch`, `fallback` forces every breaker open.
    """

    action: str
    switch: str
    open_share: float = DEFAULT_OPEN_SHARE
    for_seconds: int = DEFAULT_FOR_SECONDS
    expires_in: str = DEFAULT_EXPIRES_IN

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "OutagePolicy | None":
        """Return the policy in `document`, or None if its action is missing or unknown."""
        if document.get("action") not in (TRIP, FALLBACK):
            return None
        return cls(
            action=document["action"],
            switch=str(document.get("switch", "")),
            open_share=float(document.get("open_share", DEFAULT_OPEN_SHARE)),
            for_seconds=int(document.get("for_seconds", DEFAULT_FOR_SECONDS)),
            expires_in=str(document.get("expires_in") or DEFAULT_EXPIRES_IN),
        )


@dataclass(frozen=True)
class ObservedBreakers:
    """Numbers of instances by the state of their breaker.

    `blinded` counts the instances with a forced breaker, `instances` all others; `open` and
    `half_open` are among these others.
    """

    instances: int = 0
    open: int = 0
    half_open: int = 0
    blinded: int = 0

    @property
    def fleet(self) -> int:
        return self.instances + self.blinded

    @property
    def failing(self) -> int:
        return self.open + self.half_open


@dataclass(frozen=True)
class OngoingOutage:
    """An outage that has not ended; `acted` is True once its policy's action ran."""

    since: datetime
    seen_at: datetime
    acted: bool


class OutageMove(Enum):
    """The next step of an outage.

    BEGIN opens it, SEE records that it lasts, ACT runs the action of its policy. RECOVER ends it
    because breakers closed, FORGET because no instance has reported for 5 minutes, and DROP because
    the policy was removed.
    """

    NOTHING = "nothing"
    BEGIN = "begin"
    SEE = "see"
    ACT = "act"
    RECOVER = "recover"
    FORGET = "forget"
    DROP = "drop"


ENDING_MOVES = (OutageMove.RECOVER, OutageMove.FORGET, OutageMove.DROP)


def decide_move(
    policy: OutagePolicy | None,
    observed: ObservedBreakers,
    outage: OngoingOutage | None,
    now: datetime,
) -> OutageMove:
    """Return the next step of a dependency's outage; `outage` is None while there is none."""
    if policy is None:
        return OutageMove.NOTHING if outage is None else OutageMove.DROP
    enough = policy.open_share * observed.fleet
    if outage is None:
        begins = observed.open > 0 and observed.open >= enough
        return OutageMove.BEGIN if begins else OutageMove.NOTHING
    if observed.fleet == 0:
        return OutageMove.FORGET if now - outage.seen_at >= FORGET_AFTER else OutageMove.NOTHING
    if observed.failing == 0 or observed.failing < enough:
        return OutageMove.SEE if observed.blinded else OutageMove.RECOVER
    if not outage.acted and now - outage.since >= timedelta(seconds=policy.for_seconds):
        return OutageMove.ACT
    return OutageMove.SEE
