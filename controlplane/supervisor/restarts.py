"""Delays before restarts of children that died, and the limit of deaths."""

from dataclasses import dataclass

FIRST_DELAY_SECONDS = 0.1
MAX_DELAY_SECONDS = 5.0
QUICK_DEATH_SECONDS = 2.0
QUICK_DEATHS_ALLOWED = 5
STEADY_SECONDS = 30.0


@dataclass
class Restarts:
    """Counts of a child's deaths."""

    in_a_row: int = 0
    quick_in_a_row: int = 0

    @property
    def is_failing(self) -> bool:
        """True if the child has died `QUICK_DEATHS_ALLOWED` times in a row soon after its start."""
        return self.quick_in_a_row >= QUICK_DEATHS_ALLOWED

    def delay_seconds(self, lived_seconds: float) -> float:
        """Record a death; return the seconds to wait, which double with each death in a row."""
        is_quick = lived_seconds < QUICK_DEATH_SECONDS
        self.quick_in_a_row = self.quick_in_a_row + 1 if is_quick else 0
        self.in_a_row = 1 if lived_seconds >= STEADY_SECONDS else self.in_a_row + 1
        doublings = min(self.in_a_row - 1, 16)
        return float(min(FIRST_DELAY_SECONDS * 2**doublings, MAX_DELAY_SECONDS))
