"""Reads of stream entries in pages of bounded size."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from breakers.dead_letters.letters import ids
from breakers.dead_letters.letters.entries import LetterEntry

from . import servers
from .servers import ScriptCall

MAX_STREAM_ID = f"{ids.MAX_PART}-{ids.MAX_PART}"
NO_LIMIT_BYTES = 64 * 1024 * 1024 + 1024  # Larger letters are never removed nor shown whole.
MAX_FIELDS = 100_000
AT_ONCE = 500
BUDGET = 4 * 1024 * 1024  # bytes of payload that one script call may read
SHOWN_BYTES = 2048  # of a value in a list
SHOWN_FIELDS = 100
SHOWN_IN_ALL = 1024 * 1024  # bytes of an entry in a list


@dataclass(frozen=True)
class ReadLimits:
    """Limits of a read.

    `value_bytes` limits each value, `fields` the fields of an entry, `entries` the entries of a
    page. Beyond `total_bytes` of names and values, an entry's values are empty, with their sizes
    only.
    """

    value_bytes: int = NO_LIMIT_BYTES
    fields: int = MAX_FIELDS
    entries: int = AT_ONCE
    total_bytes: int = NO_LIMIT_BYTES


LIST_LIMITS = ReadLimits(value_bytes=SHOWN_BYTES, fields=SHOWN_FIELDS, total_bytes=SHOWN_IN_ALL)
"""Read limits for lists."""
NO_LIMITS = ReadLimits()
"""Read limits within which every removable letter is read whole."""


@dataclass(frozen=True)
class EntryPage:
    """Entries in the requested order; `more` is True if others may follow."""

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
    """Return up to `limits.entries` entries between the ids `first` and `last`, inclusive.

    The page continues after the entry `after`, in the requested order. It may be shorter and
    still have `more`, since one call reads a few megabytes at most, but at least one entry. Raises
    :class:`ServerUnavailable` and :class:`ServerRefused`.
    """
    if after == MAX_STREAM_ID and not newest_first:
        return EntryPage([], False)  # Redis rejects a range that starts after the greatest id.
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
    """Yield every entry after `after` up to `last`, oldest first, read page by page."""
    while True:
        found = read_page(server, stream, after=after, last=last, limits=limits)
        yield from found.entries
        if not found.more or not found.entries:
            return
        after = found.entries[-1].id


def read_entry(
    server: str, stream: str, entry_id: str, *, limits: ReadLimits = NO_LIMITS
) -> LetterEntry | None:
    """Return the entry with this id, or None if it does not exist."""
    found = read_page(server, stream, first=entry_id, last=entry_id, limits=limits)
    return found.entries[0] if found.entries else None


def read_entries(
    server: str, stream: str, entry_ids: Sequence[str], limits: ReadLimits = NO_LIMITS
) -> list[LetterEntry]:
    """Return the existing entries with these ids, in the given order.

    All entries are held in memory. Raises :class:`ServerUnavailable` and :class:`ServerRefused`.
    """
    entries: list[LetterEntry] = []
    waiting, limits = list(dict.fromkeys(entry_ids)), replace(limits, entries=AT_ONCE)
    while waiting:
        batch = waiting[:AT_ONCE]
        page = _run_read(server, stream, ("-", "+", "these"), limits, batch)
        entries += page.entries
        read = batch.index(page.entries[-1].id) + 1 if page.more else len(batch)
        waiting = waiting[read:]
    return entries


def _run_read(
    server: str,
    stream: str,
    which: tuple[str, str, str],
    limits: ReadLimits,
    entry_ids: Sequence[str] = (),
) -> EntryPage:
    bounds = (limits.entries, limits.value_bytes, limits.fields, limits.total_bytes, BUDGET)
    call = ScriptCall([stream], [*which, *bounds, *entry_ids])
    rows, more = servers.get_server(server).run("read", call)
    entries = [
        LetterEntry(
            entry_id.decode(),
            tuple(zip(flat[::2], flat[1::2], strict=True)),
            tuple(sizes),
            fields_total,
        )
        for entry_id, flat, sizes, fields_total in rows
    ]
    return EntryPage(entries, bool(more))
