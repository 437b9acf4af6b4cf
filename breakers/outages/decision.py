"""Decisions on when an outage begins, is acted upon, and ends. Pure.

A half-open breaker keeps an outage going but begins none. Forced and silent instances say nothing
about the callee: while there are such, a known outage goes on. Forced instances count as part of
the fleet, so that a few others are not taken for all.
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
"""Time without reports after which an outage is forgotten."""


@dataclass(frozen=True)
class OutagePolicy:
    """The action to take once breakers are open in `open_share` (0 to 1) of instances.

    They have to be open for `for_seconds`. `trip` stops `switch`, `fallback` forces every breaker
    open.
    """

    action: str
    switch: str
    open_share: float = DEFAULT_OPEN_SHARE
    for_seconds: int = DEFAULT_FOR_SECONDS
    expires_in: str = DEFAULT_EXPIRES_IN

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "OutagePolicy | None":
        """Return the registered policy, or None if its action is unknown or missing."""
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
    """Counts of breakers in fresh instances.

    `blinded` are those with a forced mode, beside `instances`.
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
    """An outage that lasts: its beginning, when it was last seen, and if it was acted upon."""

    since: datetime
    seen_at: datetime
    acted: bool


class OutageMove(Enum):
    """A step of an outage.

    RECOVER, FORGET and DROP end it: calls succeed again, nobody has reported for long, or the
    policy was removed.
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
    policy: OutagePolicy | None, seen: ObservedBreakers, outage: OngoingOutage | None, now: datetime
) -> OutageMove:
    """Return the step to take for a dependency now."""
    if policy is None:
        return OutageMove.NOTHING if outage is None else OutageMove.DROP
    enough = policy.open_share * seen.fleet
    if outage is None:
        return OutageMove.BEGIN if seen.open > 0 and seen.open >= enough else OutageMove.NOTHING
    if seen.fleet == 0:
        return OutageMove.FORGET if now - outage.seen_at >= FORGET_AFTER else OutageMove.NOTHING
    if seen.failing == 0 or seen.failing < enough:
        return OutageMove.SEE if seen.blinded else OutageMove.RECOVER
    if not outage.acted and now - outage.since >= timedelta(seconds=policy.for_seconds):
        return OutageMove.ACT
    return OutageMove.SEE
