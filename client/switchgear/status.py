"""How a client stands: for a health page, a log line, or whoever wonders at 3 a.m."""

from dataclasses import dataclass
from typing import Literal

SnapshotSource = Literal["none", "disk", "bootstrap", "console"]
FollowState = Literal["offline", "starting", "stream", "held", "poll", "down"]


@dataclass(frozen=True)
class Status:
    """`source`: where the snapshot in force came from. `way`: how the console is followed now.

    `age_seconds`: since the console last confirmed that snapshot, None if it never did here.
    `bootstrap_age_seconds`: since a snapshot from the bootstrap was published, None for any other.
    `problems`: settings that can't be used, and what is done instead; empty if all is well.
    `error`: why the last try failed, None if it did not. `stopped`: how many switches are engaged
    or ramping now. `config_version`: that of the policies in force, None if there are none;
    `config_error`: why the last try to fetch them failed, None if it did not. `unknown` counts the
    calls of which nothing was known, `dropped` those not counted for want of room, `unreported` the
    reports that failed.
    """

    service: str
    instance: str
    source: SnapshotSource
    way: FollowState
    epoch: str | None
    version: int | None
    config_version: int | None
    config_error: str | None
    age_seconds: float | None
    bootstrap_age_seconds: float | None
    error: str | None
    stopped: int
    forced: tuple[str, ...]
    unknown: int
    dropped: int
    unreported: int
    problems: tuple[str, ...]
