"""Canonical JSON: one text for each value, so that values can be hashed and compared."""

import hashlib
import json
from datetime import UTC, datetime
from typing import Any

MAX_EVIDENCE_BYTES = 32 * 1024
"""Maximum size, as canonical JSON, of the evidence attached to a change."""
TOO_MUCH_EVIDENCE = f"At most {MAX_EVIDENCE_BYTES // 1024} KiB; link to the rest."


def dumps(value: Any) -> str:
    """Return canonical JSON: sorted keys, no spaces, ASCII only."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=_plain
    )


def digest(value: Any) -> str:
    """Return the SHA-256 of a value in canonical form, in hexadecimal."""
    return hashlib.sha256(dumps(value).encode()).hexdigest()


def timestamp(moment: datetime) -> str:
    """Return the time as RFC 3339 in UTC with six decimals: `2026-11-21T02:11:00.000000Z`."""
    utc = moment.astimezone(UTC).replace(tzinfo=None)  # Formatting an offset takes as long again.
    return utc.isoformat(timespec="microseconds") + "Z"


def timestamp_or_none(moment: datetime | None) -> str | None:
    return timestamp(moment) if moment else None


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return timestamp(value)
    raise TypeError(f"no canonical form for {type(value).__name__}")
