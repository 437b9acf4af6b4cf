"""Reading of entries from a stream, in pages of bounded size."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from breakers.dead_letters.letters import ids
from breakers.dead_letters.letters.entries import LetterEntry

from . import servers
from .servers import ScriptCall

MAX_STREAM_ID = f"{ids.MAX_PART}-{ids.MAX_PART}"
NO_LIMIT_BYTES = 64 * 1024 * 1024 + 1024  # bytes; what is larger never leaves, and no page shows it
MAX_FIELDS = 100_000
AT_ONCE = 500
BUDGET = 4 * 1024 * 1024  # bytes of payload that one look goes through
SHOWN_BYTES = 2048  # of a value in a list
SHOWN_FIELDS = 100
SHOWN_IN_ALL = 1024 * 1024  # bytes of an entry in a list


@dataclass(frozen=True)
class ReadLimits:
    """Limits of what is read.

    They are bytes of a value, fields, entries at a time, and `total_bytes` of names and values,
    behind which values are empty and have only sizes.
    """

    value_bytes: int = NO_LIMIT_BYTES
    fields: int = MAX_FIELDS
    entries: int = AT_ONCE
    total_bytes: int = NO_LIMIT_BYTES


LIST_LIMITS = ReadLimits(value_bytes=SHOWN_BYTES, fields=SHOWN_FIELDS, total_bytes=SHOWN_IN_ALL)
"""Limits of letters in lists."""
NO_LIMITS = ReadLimits()
"""Limits that read everything of letters that may be removed."""


@dataclass(frozen=True)
class EntryPage:
    """Entries in the requested order, and `more` if others may follow."""

    entries: list[LetterEntry]
    more: bool


def read_page(
    server: str,
    stream: str,
    *,
    after: str = "",
    first: str = "-",
    last: str = "+",
    newest_first: bool = False,
    limits: ReadLimits = LIST_LIMITS,
) -> EntryPage:
    """Return up to `limits.entries` between two ids, inclusive.

    `after` continues behind that entry (before it, if newest first).

    It may return fewer and `more`: one call reads a few megabytes at most, and one entry at least.
    Raises :class:`ServerUnavailable` and :class:`ServerRefused`.
    """
    if after == MAX_STREAM_ID and not newest_first:  # Redis refuses to be asked for what is behind.
        return EntryPage([], False)
    if after:
        first, last = (first, f"({after}") if newest_first else (f"({after}", last)
    order = "newest" if newest_first else "oldest"
    return _run_read(server, stream, (first, last, order), limits)


def iterate_entries(
    server: str,
    stream: str,
    *,
    after: str = "",
    last: str = "+",
    limits: ReadLimits = NO_LIMITS,
) -> Iterator[LetterEntry]:
    """Yield every entry behind `after` up to `last`, oldest first, page by page."""
    while True:
        found = read_page(server, stream, after=after, last=last, limits=limits)
        yield from found.entries
        if not found.more or not found.entries:
            return
        after = found.entries[-1].id


def read_entry(
    server: str, stream: str, entry_id: str, *, limits: ReadLimits = NO_LIMITS
) -> LetterEntry | None:
    """Return the entry of this id, or None if it does not exist."""
    found = read_page(server, stream, first=entry_id, last=entry_id, limits=limits)
    return found.entries[0] if found.entries else None


def read_entries(
    server: str, stream: str, entry_ids: Sequence[str], limits: ReadLimits = NO_LIMITS
) -> list[LetterEntry]:
    """Return the existing entries of these ids, in their order.

    It takes as many calls of a few megabytes as needed.

    The caller holds all of them in memory. Raises :class:`ServerUnavailable` and
    :class:`ServerRefused`.
    """
    found: list[LetterEntry] = []
    waiting, limits = list(dict.fromkeys(entry_ids)), replace(limits, entries=AT_ONCE)
    while waiting:
        asked = waiting[:AT_ONCE]
        given = _run_read(server, stream, ("-", "+", "these"), limits, asked)
        found += given.entries
        looked_at = asked.index(given.entries[-1].id) + 1 if given.more else len(asked)
        waiting = waiting[looked_at:]
    return found


def _run_read(
    server: str,
    stream: str,
    which: tuple[str, str, str],
    limits: ReadLimits,
    entry_ids: Sequence[str] = (),
) -> EntryPage:
    bounds = (limits.entries, limits.value_bytes, limits.fields, limits.total_bytes, BUDGET)
    call = ScriptCall([stream], [*which, *bounds, *entry_ids])
    given, more = servers.get_server(server).run("read", call)
    return EntryPage([_parse_entry(one) for one in given], bool(more))


def _parse_entry(given: Any) -> LetterEntry:
    entry_id, flat, sizes, fields_total = given
    pairs = tuple(zip(flat[::2], flat[1::2], strict=True))
    return LetterEntry(entry_id.decode(), pairs, tuple(sizes), fields_total)
