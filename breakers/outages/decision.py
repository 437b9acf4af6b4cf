"""When an outage begins, when it is acted upon, and when it is over. Pure.

A breaker that tries again (half-open) keeps an outage going, but begins none. What somebody has
forced says nothing about the callee, and an instance that is silent says nothing at all: while
there are such, whatever was known stands. The forced ones count as part of the fleet all the same,
so that the few beside them are not taken for all.
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
"""For so long an outage is believed to last while nobody says anything of it."""


@dataclass(frozen=True)
class OutagePolicy:
    """What is done once breakers have been open in `open_share` (0 to 1) of instances for
    `for_seconds`: `trip` stops `switch`, `fallback` forces every breaker open."""

    action: str
    switch: str
    open_share: float = DEFAULT_OPEN_SHARE
    for_seconds: int = DEFAULT_FOR_SECONDS
    expires_in: str = DEFAULT_EXPIRES_IN

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "OutagePolicy | None":
        """As it is registered; None if it asks for nothing that is known here."""
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
    """The breakers that go by themselves, in instances that are fresh; `blinded` are those upon
    which a mode is forced, beside them."""

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
    """One that lasts: since when, when it was last seen, and whether it was acted upon."""

    since: datetime
    seen_at: datetime
    acted: bool


class OutageMove(Enum):
    """Three of them end it: calls go through again, nobody has told of it for long, or nobody
    wants it to be watched any more."""

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
    """What is to be done about a dependency now."""
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
