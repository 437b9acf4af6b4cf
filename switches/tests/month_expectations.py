"""Expectations of the simulated month: expiries of episodes, and ramps that begin at some."""

from dataclasses import dataclass
from datetime import datetime, timedelta

DWELL = timedelta(minutes=5)
A_WHILE = timedelta(seconds=10)
"""Maximum delay of a step after the clock's turn, while other ramps are processed."""
SHARES = 4
"""Shares of a ramp: 5 %, 25 %, 100 %, and released."""


@dataclass
class Term:
    """An expiry of an episode, or a week of a permanent one, until a person replaced or ended it.

    Only people set `until`.
    """

    switch: str
    episode: int
    policy: str
    set_at: datetime
    ends_at: datetime
    permanent: bool = False
    acknowledged_at: datetime | None = None
    until: datetime | None = None
    looked_after: bool = False
    ascent: "Ascent | None" = None

    @property
    def where(self) -> dict[str, str]:
        scope, _, key = self.switch.partition(":")
        return {"scope": scope, "key": key}

    def stood_at(self, moment: datetime) -> bool:
        return self.set_at <= moment and (self.until is None or moment < self.until)

    def calls_at(self, moment: datetime) -> bool:
        """Return True if people are escalated to, without any reaction so far."""
        called = self.ends_at <= moment and self.until is None and not self.lets_go_by_itself
        return called and self.acknowledged_at is None

    @property
    def lets_go_by_itself(self) -> bool:
        """Return True if nobody has to act at its end, unless somebody aborts its ramp."""
        if self.permanent or (self.ascent is not None and self.ascent.aborted_at):
            return False
        return self.policy in ("release", "ramp")


@dataclass
class Ascent:
    """A ramp: the times of each share (the last: released), unless it was aborted."""

    switch: str
    episode: int
    moments: list[datetime]
    by_itself: bool = False
    aborted_at: datetime | None = None

    @property
    def is_over(self) -> bool:
        return self.aborted_at is not None or len(self.moments) == SHARES

    def look(self, now: datetime) -> None:
        late = A_WHILE if len(self.moments) > 1 else timedelta()  # It began just then.
        if not self.is_over and now >= self.moments[-1] + DWELL + late:
            self.moments.append(now)
