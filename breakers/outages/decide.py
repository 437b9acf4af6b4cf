"""When an outage begins, when it is acted upon, and when it is over. Pure.

A breaker that tries again (half-open) keeps an outage going, but begins none. What an operator has
forced says nothing about the callee, and an instance that is silent says nothing at all: with such
alone, whatever was known stands.
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
    def of(cls, document: Mapping[str, Any], callee: str) -> "Policy | None":
        """As it is registered; None if it asks for nothing that is known here."""
        if document.get("action") not in (TRIP, FALLBACK):
            return None
        return cls(
            action=document["action"],
            switch=document.get("switch") or f"segment:{callee}",
            open_share=float(document.get("open_share", USUAL_SHARE)),
            for_seconds=int(document.get("for_seconds", USUAL_SECONDS)),
            expires_in=str(document.get("expires_in") or USUAL_EXPIRY),
        )


@dataclass(frozen=True)
class Seen:
    """The breakers that go by themselves, in instances that are fresh; `blinded` are those upon
    which a mode is forced."""

    instances: int = 0
    open: int = 0
    half_open: int = 0
    blinded: int = 0


@dataclass(frozen=True)
class Outage:
    """One that lasts: since when, when it was last seen, and whether it was acted upon."""

    since: datetime
    seen_at: datetime
    acted: bool


class Move(Enum):
    NOTHING = "nothing"
    BEGIN = "begin"
    SEE = "see"
    ACT = "act"
    END = "end"


def decide(policy: Policy | None, seen: Seen, outage: Outage | None, now: datetime) -> Move:
    """What is to be done about a dependency now."""
    if policy is None:
        return Move.NOTHING if outage is None else Move.END
    if outage is None:
        begins = seen.open > 0 and seen.open >= policy.open_share * seen.instances
        return Move.BEGIN if begins else Move.NOTHING
    if seen.instances == 0:
        forgotten = not seen.blinded and now - outage.seen_at >= FORGOTTEN
        return Move.END if forgotten else Move.NOTHING
    failing = seen.open + seen.half_open
    if failing == 0 or failing < policy.open_share * seen.instances:
        return Move.END
    if not outage.acted and now - outage.since >= timedelta(seconds=policy.for_seconds):
        return Move.ACT
    return Move.SEE
