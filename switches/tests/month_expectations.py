"""Expectations of the simulated month: expiries of episodes, and the ramps that start at some."""

from dataclasses import dataclass
from datetime import datetime, timedelta

DWELL = timedelta(minutes=5)
A_WHILE = timedelta(seconds=10)
"""Maximum delay of a step after the clock's turn, while other ramps are processed."""
SHARES = 4
"""Shares of a ramp: 5 %, 25 %, 100 %, and released."""


@dataclass
class Term:
    """The time of an episode until an expiry, or a permanent episode's week until re-confirmation.

    `until` is the time at which a person replaced or ended it.
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
        """Return True if its end releases the switch without a person, unless a ramp is aborted."""
        if self.permanent or (self.ascent is not None and self.ascent.aborted_at):
            return False
        return self.policy in ("release", "ramp")


@dataclass
class Ascent:
    """An expected ramp: the time at which each share begins (the last: released), and its abort."""

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
