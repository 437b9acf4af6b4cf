"""Entry ids (`1700000000000-0`), and positions: ids padded to sort as text. Pure."""

from datetime import UTC, datetime

from controlplane.core.errors import NotFound

MAX_PART = 2**64 - 1
MAX_ID = f"{MAX_PART}-{MAX_PART}"
MAX_POSITION = MAX_ID  # The greatest id has no padding.
_DIGITS = 20


def to_position(entry_id: str) -> str:
    """Return the position of an entry id. Raises :class:`NotFound` for an invalid id."""
    milliseconds, _, number = entry_id.partition("-")
    parts = (milliseconds, number or "0")
    is_valid = all(one.isascii() and one.isdigit() and len(one) <= _DIGITS for one in parts)
    if not is_valid or any(int(one) > MAX_PART for one in parts):
        raise NotFound("Not the id of an entry in a stream.")
    return f"{int(parts[0]):020d}-{int(parts[1]):020d}"


def to_entry_id(position: str) -> str:
    """Return the entry id of a position, in the notation of Redis."""
    milliseconds, _, number = position.partition("-")
    return f"{int(milliseconds)}-{int(number)}"


def added_at(position: str) -> datetime | None:
    """Return the time that the position encodes; None if it is before 2001 or after 2099."""
    milliseconds = int(position.partition("-")[0])
    if not 10**12 <= milliseconds < 4_102_444_800_000:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, tz=UTC)
