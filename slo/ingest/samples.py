"""What sources tell of SLIs. Pure."""

from datetime import datetime
from typing import NamedTuple


class Sample(NamedTuple):
    """What a boot of a source says of an SLI (its id) at a moment, counted since `started_at` if it
    says so; all times aware. Counts are at most 2^53."""

    sli: int
    source: str
    boot: str
    at: datetime
    good: float
    total: float
    started_at: datetime | None = None


class Counted(NamedTuple):
    """Events of an SLI (its id) that a source counted by itself between two moments; where they are
    at most 2 minutes apart, that span is covered."""

    sli: int
    source: str
    began_at: datetime
    ended_at: datetime
    good: float
    total: float
