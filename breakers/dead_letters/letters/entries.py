"""A dead letter as a Redis stream entry: field names and values in bytes, and metadata. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from breakers.dead_letters.letters import ids

Pairs = Sequence[tuple[bytes, bytes]]
"""Field names and values in order; names may repeat, and values need not be text."""

ERROR, ERROR_TYPE = b"dlq_error", b"dlq_error_type"
ATTEMPTS, ORIGINAL_ID = b"dlq_attempts", b"dlq_original_id"
GROUP, FAILED_AT = b"dlq_group", b"dlq_failed_at"
METADATA = frozenset({ERROR, ERROR_TYPE, ATTEMPTS, ORIGINAL_ID, GROUP, FAILED_AT})
"""Fields added to the original message when it became a dead letter; any may be missing."""
RETRY_OF, RETRY_COUNT = b"dlq_retry_of", b"dlq_retry_count"
"""Fields that a retry adds: the id of the dead letter, and the number of retries so far."""
RESERVED_NAMES = METADATA | {RETRY_OF, RETRY_COUNT}

EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
"""Range of plausible times of failure."""


@dataclass(frozen=True)
class ReadLimits:
    """Limits for reading stream entries. The defaults allow every letter that can be removed.

    `value_bytes` limits each value, `fields` the fields of an entry, `entries` the entries of a
    page. Once `total_bytes` of names and values have been read, further values are left empty.
    """

    value_bytes: int = 64 * 1024 * 1024 + 1024
    fields: int = 100_000
    entries: int = 500
    total_bytes: int = 64 * 1024 * 1024 + 1024


NO_LIMITS = ReadLimits()
"""Limits within which every removable letter is whole."""
OUTLINE = ReadLimits(value_bytes=1, fields=1, entries=1)
"""Limits for reading only whether an entry exists, and its sizes."""


def _text_of(name: bytes) -> Any:
    """Return a property: the text of the field `name`, empty if the entry lacks the field."""
    return property(lambda entry: to_text(entry.value(name) or b""))


@dataclass(frozen=True)
class LetterEntry:
    """A dead letter as read from its stream, possibly in part.

    If values were truncated, `sizes` are their full lengths. If only the first fields were read,
    `fields_total` is the number of all fields.
    """

    id: str
    pairs: tuple[tuple[bytes, bytes], ...]
    sizes: tuple[int, ...] = ()
    fields_total: int = 0

    error = _text_of(ERROR)
    error_type = _text_of(ERROR_TYPE)
    group = _text_of(GROUP)
    original_id = _text_of(ORIGINAL_ID)
    retry_of = _text_of(RETRY_OF)

    @property
    def position(self) -> str:
        return ids.to_position(self.id)

    @property
    def size_bytes(self) -> int:
        """Total size of all names and values that were read, at their full lengths."""
        values = sum(self.sizes) if self.sizes else sum(len(value) for _, value in self.pairs)
        return values + sum(len(name) for name, _ in self.pairs)

    @property
    def is_whole(self) -> bool:
        """True if the entry was read with all fields and without truncation."""
        if self.fields_total > len(self.pairs):
            return False
        lengths = tuple(len(value) for _, value in self.pairs)
        return not self.sizes or self.sizes == lengths

    @property
    def original(self) -> tuple[tuple[bytes, bytes], ...]:
        """The message without the metadata, as it was in its origin stream."""
        return tuple(pair for pair in self.pairs if pair[0] not in METADATA)

    @property
    def attempts(self) -> int | None:
        return self._number(ATTEMPTS)

    @property
    def retries(self) -> int:
        """Number of retries before the message became this dead letter."""
        return self._number(RETRY_COUNT) or 0

    @property
    def failed_at(self) -> datetime | None:
        """Time of failure in the metadata; if that is missing or invalid, the time in the entry id.

        None if the id has no time either.
        """
        return _parse_moment(to_text(self.value(FAILED_AT) or b"")) or ids.added_at(self.position)

    @property
    def plausible_failed_at(self) -> datetime | None:
        """`failed_at` if it is between `EARLIEST` and `LATEST`, else the time in the entry id."""
        at = self.failed_at
        is_plausible = at is not None and EARLIEST <= at <= LATEST
        return at if is_plausible else ids.added_at(self.position)

    def value(self, name: bytes) -> bytes | None:
        """Return the first value of the field `name`; None if the entry has no such field."""
        return next((value for each, value in self.pairs if each == name), None)

    def _number(self, name: bytes) -> int | None:
        text = to_text(self.value(name) or b"").strip()
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def pack_pairs(pairs: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return names and values as JSON for a database column; each byte becomes one character."""
    return orjson.dumps(
        [[name.decode("latin-1"), value.decode("latin-1")] for name, value in pairs]
    )


def unpack_pairs(packed: bytes | memoryview) -> tuple[tuple[bytes, bytes], ...]:
    """Return the names and values that :func:`pack_pairs` has packed."""
    rows = orjson.loads(bytes(packed))
    return tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in rows)


def to_text(value: bytes) -> str:
    """Decode bytes to text that PostgreSQL, JSON and HTML accept."""
    return value.decode("utf-8", "backslashreplace").replace("\x00", "␀")


def _parse_moment(text: str) -> datetime | None:
    """Parse RFC 3339, or seconds or milliseconds since 1970; return None for anything else."""
    text = text.strip()
    try:
        if text.replace(".", "", 1).isdigit() and text.isascii() and len(text) < 25:
            seconds = float(text)
            return datetime.fromtimestamp(seconds / (1000 if seconds >= 10**11 else 1), tz=UTC)
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None
