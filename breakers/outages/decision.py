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
USUAL_SHARE = 0.5
USUAL_SECONDS = 30
USUAL_EXPIRY = "1h"
FORGOTTEN = timedelta(minutes=5)
"""For so long an outage is believed to last while nobody says anything of it."""


@dataclass(frozen=True)
class Policy:
    """What is done once breakers have been open in `open_share` (0 to 1) of instances for
    `for_seconds`: `trip` stops `switch`, `fallback` forces every breaker open."""

    action: str
    switch: str
    open_share: float = USUAL_SHARE
    for_seconds: int = USUAL_SECONDS
    expires_in: str = USUAL_EXPIRY

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "OutagePolicy | None":
        """As it is registered; None if it asks for nothing that is known here."""
        if document.get("action") not in (TRIP, FALLBACK):
            return None
        return cls(
            action=document["action"],
            switch=str(document.get("switch", "")),
            open_share=float(document.get("open_share", USUAL_SHARE)),
            for_seconds=int(document.get("for_seconds", USUAL_SECONDS)),
            expires_in=str(document.get("expires_in") or USUAL_EXPIRY),
        )


@dataclass(frozen=True)
class Seen:
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
class Outage:
    """One that lasts: since when, when it was last seen, and whether it was acted upon."""

    since: datetime
    seen_at: datetime
    acted: bool


class Move(Enum):
    """Three of them end it: calls go through again, nobody has told of it for long, or nobody
    wants it to be watched any more."""

    NOTHING = "nothing"
    BEGIN = "begin"
    SEE = "see"
    ACT = "act"
    RECOVER = "recover"
    FORGET = "forget"
    DROP = "drop"


ENDS = (Move.RECOVER, Move.FORGET, Move.DROP)


def decide(policy: Policy | None, seen: Seen, outage: Outage | None, now: datetime) -> Move:
    """What is to be done about a dependency now."""
    if policy is None:
        return Move.NOTHING if outage is None else Move.DROP
    enough = policy.open_share * seen.fleet
    if outage is None:
        return Move.BEGIN if seen.open > 0 and seen.open >= enough else Move.NOTHING
    if seen.fleet == 0:
        return Move.FORGET if now - outage.seen_at >= FORGOTTEN else Move.NOTHING
    if seen.failing == 0 or seen.failing < enough:
        return Move.SEE if seen.blinded else Move.RECOVER
    if not outage.acted and now - outage.since >= timedelta(seconds=policy.for_seconds):
        return Move.ACT
    return Move.SEE
