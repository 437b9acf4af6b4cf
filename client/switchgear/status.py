"""The status of a client, for a health page or a log."""

from dataclasses import dataclass
from typing import Literal

SnapshotSource = Literal["none", "disk", "bootstrap", "console", "fallback"]
FollowState = Literal["offline", "starting", "stream", "held", "poll", "down"]


@dataclass(frozen=True)
class Status:
    """The status of a client.

    `source` is the origin of the snapshot in force, `way` the current way of receiving changes from
    the console. `age_seconds` is the time since the console last confirmed the snapshot, None if it
    never did. `verified` is True if only snapshots with a valid signature are put in force.
    `bootstrap_age_seconds` is the age of a snapshot from the bootstrap, None for any other.
    `stopped` is the number of switches engaged or ramping now. `orders` are the ids of emergency
    orders in force.

    `problems` are unusable settings and their replacements. `error` is the last failure of
    following the console, None after a success; `fallback_error` the last failure of reading the
    fallback URL, None while it is not needed. `config_version` is the version of the policies in
    force, None without any; `config_error` the last failure to fetch them. `unknown` counts calls
    with unknown keys, `dropped` counts events that were not reported, `unreported` counts failed
    reports.
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
    orders: tuple[str, ...]
    forced: tuple[str, ...]
    unknown: int
    dropped: int
    unreported: int
    problems: tuple[str, ...]
    verified: bool = False
    fallback_error: str | None = None
