"""Per-minute counters of an instance's checks of a switch, in a JSON entry. Pure.

An entry is `{"allowed", "blocked"}`: all calls ever counted; `{"minute", "now", "before"}`: those
of the minute with that number (minutes since 1970) and of the one before it; `now_blocked` and
`before_blocked`: the blocked ones of those; and `seen`: the time of the last check, in RFC 3339.
Counts of several processes can be added in any order.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from controlplane.core.canonical import timestamp

MINUTE_SECONDS = 60
MAX_CALLS = 2**53
"""Upper limit of counts: the largest integer that all JSON readers support."""

Entry = Mapping[str, Any]


def counted(
    entry: Entry | None,
    allowed: int,
    blocked: int,
    at: datetime,
    since: datetime | None = None,
) -> dict[str, Any]:
    """The entry after `allowed` and `blocked` more calls, all at `at`, which is aware.

    With `since` they are spread evenly from then to `at`: a report after an hour of silence is an
    hour of calls, not a burst. Calls older than the entry's two minutes count in the totals alone.
    """
    minute = int(at.timestamp() // MINUTE_SECONDS)
    result = _rolled(dict(entry or _blank(at)), minute)
    latest = result["minute"]
    more = {"allowed": allowed, "blocked": blocked}
    for name, back in (("now", 0), ("before", 1)):
        share = _share(latest - back, at, since)
        more[name] = round((allowed + blocked) * share)
        more[f"{name}_blocked"] = round(blocked * share)
    for name, number in more.items():
        result[name] = min(result[name] + number, MAX_CALLS)
    result["seen"] = timestamp(max(seen(result), at))
    return result


def per_second(entry: Entry, at: datetime) -> float:
    """Return calls per second over the 60 s before `at`; 0 when silent.

    The previous minute counts in proportion to its overlap with these 60 s, as if its calls were
    evenly spread. In its first minute an instance counts as silent before.
    """
    return _sliding(entry["minute"], entry["now"], entry["before"], at)


def blocked_per_second(entry: Entry, at: datetime) -> float:
    """Return the rate of blocked calls; see :func:`per_second`."""
    return _sliding(entry["minute"], entry["now_blocked"], entry["before_blocked"], at)


def seen(entry: Entry) -> datetime:
    """Return the time of the last check: aware, in UTC."""
    return datetime.fromisoformat(entry["seen"])


def _blank(at: datetime) -> dict[str, Any]:
    counts = ("allowed", "blocked", "now", "before", "now_blocked", "before_blocked")
    return {
        **dict.fromkeys(counts, 0),
        "minute": int(at.timestamp() // MINUTE_SECONDS),
        "seen": timestamp(at.astimezone(UTC)),
    }


def _rolled(entry: dict[str, Any], minute: int) -> dict[str, Any]:
    """Return the entry with `minute` as its newest minute, unless it is newer already."""
    ahead = minute - entry["minute"]
    if ahead <= 0:
        return entry
    for name in ("", "_blocked"):
        entry[f"before{name}"] = entry[f"now{name}"] if ahead == 1 else 0
        entry[f"now{name}"] = 0
    entry["minute"] = minute
    return entry


def _share(minute: int, at: datetime, since: datetime | None) -> float:
    """Return the share, 0 to 1, of `since` to `at` that falls in `minute`."""
    end = at.timestamp()
    start = end if since is None else min(since.timestamp(), end)
    begins = minute * MINUTE_SECONDS
    if end - start < 1e-6:  # Simultaneous calls happened in one minute.
        return float(int(end // MINUTE_SECONDS) == minute)
    overlap = min(end, begins + MINUTE_SECONDS) - max(start, begins)
    return max(0.0, overlap) / (end - start)


def _sliding(minute: int, now: int, before: int, at: datetime) -> float:
    passed = at.timestamp() - minute * MINUTE_SECONDS
    if passed >= MINUTE_SECONDS:
        now, before, passed = 0, now, passed - MINUTE_SECONDS
    if passed >= MINUTE_SECONDS:
        return 0.0
    inside = 1 - max(0.0, passed) / MINUTE_SECONDS
    return (now + before * inside) / MINUTE_SECONDS
