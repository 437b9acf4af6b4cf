"""A dead letter as a stream entry: names and values as bytes, and its metadata. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from breakers.dead_letters.letters import ids

Pairs = Sequence[tuple[bytes, bytes]]
"""Names and values in order; names may repeat, and bytes need not be text."""

ERROR, ERROR_TYPE = b"dlq_error", b"dlq_error_type"
ATTEMPTS, ORIGINAL_ID = b"dlq_attempts", b"dlq_original_id"
GROUP, FAILED_AT = b"dlq_group", b"dlq_failed_at"
METADATA = frozenset({ERROR, ERROR_TYPE, ATTEMPTS, ORIGINAL_ID, GROUP, FAILED_AT})
"""Fields added to the original message when it became a dead letter; any may be missing."""
RETRY_OF, RETRY_COUNT = b"dlq_retry_of", b"dlq_retry_count"
"""Fields that a retry adds to the message: the dead letter's id, and the number of retries."""

EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
"""Range of plausible times of failure."""


@dataclass(frozen=True)
class LetterEntry:
    """An entry.

    `sizes` are the true lengths of the values where `pairs` has only their beginnings, and
    `fields_total` the number of fields if only the first were read.
    """

    id: str
    pairs: tuple[tuple[bytes, bytes], ...]
    sizes: tuple[int, ...] = ()
    fields_total: int = 0

    @property
    def position(self) -> str:
        return ids.to_position(self.id)

    @property
    def size_bytes(self) -> int:
        """Size of all names and values read, at their true lengths."""
        values = sum(self.sizes) if self.sizes else sum(len(value) for _, value in self.pairs)
        return values + sum(len(name) for name, _ in self.pairs)

    @property
    def is_whole(self) -> bool:
        """True if `pairs` has all fields and whole values."""
        if self.fields_total > len(self.pairs):
            return False
        lengths = tuple(len(value) for _, value in self.pairs)
        return not self.sizes or self.sizes == lengths

    @property
    def original(self) -> tuple[tuple[bytes, bytes], ...]:
        """The message as it was in its origin."""
        return tuple(pair for pair in self.pairs if pair[0] not in METADATA)

    @property
    def error(self) -> str:
        return self._text(ERROR)

    @property
    def error_type(self) -> str:
        return self._text(ERROR_TYPE)

    @property
    def group(self) -> str:
        return self._text(GROUP)

    @property
    def original_id(self) -> str:
        return self._text(ORIGINAL_ID)

    @property
    def attempts(self) -> int | None:
        return self._number(ATTEMPTS)

    @property
    def retries(self) -> int:
        """Retries before it became this dead letter."""
        return self._number(RETRY_COUNT) or 0

    @property
    def retry_of(self) -> str:
        """Id of the dead letter that it was before; empty if unknown."""
        return self._text(RETRY_OF)

    @property
    def failed_at(self) -> datetime | None:
        """Time of failure by its metadata, else when it was added; None if neither is known."""
        said = _parse_moment(self._text(FAILED_AT))
        return said or ids.added_at(self.position)

    @property
    def plausible_failed_at(self) -> datetime | None:
        """Time of failure if it is plausible, else when the entry was added, as far as known."""
        at = self.failed_at
        is_plausible = at is not None and EARLIEST <= at <= LATEST
        return at if is_plausible else ids.added_at(self.position)

    def value(self, name: bytes) -> bytes | None:
        """Return the first value of this name."""
        return next((value for each, value in self.pairs if each == name), None)

    def _text(self, name: bytes) -> str:
        return to_text(self.value(name) or b"")

    def _number(self, name: bytes) -> int | None:
        said = self._text(name).strip()
        return int(said) if said.isascii() and said.isdigit() and len(said) < 10 else None


def to_text(value: bytes) -> str:
    """Decode bytes to text that PostgreSQL, JSON and HTML accept."""
    return value.decode("utf-8", "backslashreplace").replace("\x00", "␀")


def _parse_moment(said: str) -> datetime | None:
    """Parse RFC 3339, or seconds or milliseconds since 1970; return None for anything else."""
    said = said.strip()
    try:
        if said.replace(".", "", 1).isdigit() and said.isascii() and len(said) < 25:
            seconds = float(said)
            seconds = seconds / 1000 if seconds >= 10**11 else seconds
            return datetime.fromtimestamp(seconds, tz=UTC)
        moment = datetime.fromisoformat(said)
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return aware.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None
