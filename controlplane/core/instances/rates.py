"""Counts of an instance's checks of one switch, as a JSON entry of two minutes and totals.

An entry's `allowed` and `blocked` are totals. `minute` is the number of the newest minute (since
1970); `now` and `before` are the calls of that minute and the previous one, and `now_blocked` and
`before_blocked` the blocked calls among them. `seen` is the time of the last check in RFC 3339.
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


def add_calls(
    entry: Entry | None,
    allowed: int,
    blocked: int,
    at: datetime,
    since: datetime | None = None,
) -> dict[str, Any]:
    """Return the entry of counts after `allowed` and `blocked` more calls until the time `at`.

    With `since`, the calls are spread evenly from `since` to `at`, so that a report after an hour
    of silence is no burst. Calls older than the entry's two minutes count only in the totals.
    """
    minute = int(at.timestamp() // MINUTE_SECONDS)
    if not entry:
        counts = ("allowed", "blocked", "now", "before", "now_blocked", "before_blocked")
        empty = dict.fromkeys(counts, 0)
        entry = {**empty, "minute": minute, "seen": timestamp(at.astimezone(UTC))}
    result = _advance_to(dict(entry), minute)
    latest = result["minute"]
    more = {"allowed": allowed, "blocked": blocked}
    for name, minutes_back in (("now", 0), ("before", 1)):
        share = _share_in_minute(latest - minutes_back, at, since)
        more[name] = round((allowed + blocked) * share)
        more[f"{name}_blocked"] = round(blocked * share)
    for name, number in more.items():
        result[name] = min(result[name] + number, MAX_CALLS)
    result["seen"] = timestamp(max(last_seen(result), at))
    return result


def per_second(entry: Entry, at: datetime) -> float:
    """Return the calls per second over the 60 s before `at`.

    The previous minute counts in proportion to its overlap with these 60 s, as if its calls were
    evenly spread. An instance has no calls before its first minute.
    """
    return _sliding(entry["minute"], entry["now"], entry["before"], at)


def blocked_per_second(entry: Entry, at: datetime) -> float:
    """Return the blocked calls per second over the 60 s before `at`, like :func:`per_second`."""
    return _sliding(entry["minute"], entry["now_blocked"], entry["before_blocked"], at)


def last_seen(entry: Entry) -> datetime:
    """Return the time of the last check, in UTC."""
    return datetime.fromisoformat(entry["seen"])


def _advance_to(entry: dict[str, Any], minute: int) -> dict[str, Any]:
    """Make `minute` the newest minute of the entry of counts, unless the entry has a newer one."""
    minutes_ahead = minute - entry["minute"]
    if minutes_ahead <= 0:
        return entry
    for name in ("", "_blocked"):
        entry[f"before{name}"] = entry[f"now{name}"] if minutes_ahead == 1 else 0
        entry[f"now{name}"] = 0
    entry["minute"] = minute
    return entry


def _share_in_minute(minute: int, at: datetime, since: datetime | None) -> float:
    """Return the share, 0 to 1, of the time from `since` to `at` that falls in `minute`."""
    end = at.timestamp()
    start = end if since is None else min(since.timestamp(), end)
    begins = minute * MINUTE_SECONDS
    if end - start < 1e-6:  # No duration to divide by.
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
