"""Reads of stream entries in pages of bounded size."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from breakers.dead_letters.letters import ids
from breakers.dead_letters.letters.entries import NO_LIMITS, LetterEntry, ReadLimits

from . import servers
from .servers import ScriptCall

AT_ONCE = NO_LIMITS.entries
BUDGET = 4 * 1024 * 1024  # bytes of payload that one script call may read


@dataclass(frozen=True)
class EntryPage:
    """A page of stream entries in the requested order; `more` is True if others may follow."""

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
    limits: ReadLimits = NO_LIMITS,
) -> EntryPage:
    """Return up to `limits.entries` entries between the ids `first` and `last`, inclusive.

    If `after` is given, the page starts after that entry, in the requested order. One call reads a
    few megabytes at most, but at least one entry; if that cuts the page short, its `more` is True.
    Raises :class:`ServerUnavailable` and :class:`ServerRefused`.
    """
    if after == ids.MAX_ID and not newest_first:
        return EntryPage([], False)  # Redis rejects a range that starts after the greatest id.
    if after:
        first, last = (first, f"({after}") if newest_first else (f"({after}", last)
    order = "newest" if newest_first else "oldest"
    return _run_read(server, stream, (first, last, order), limits)


def iterate_pages(
    server: str, stream: str, *, after: str = "", **options: Any
) -> Iterator[EntryPage]:
    """Yield the pages of entries after the id `after`; `options` are those of :func:`read_page`."""
    page = read_page(server, stream, after=after, **options)
    while page.entries:
        yield page
        if not page.more:
            return
        page = read_page(server, stream, after=page.entries[-1].id, **options)


def read_entry(
    server: str, stream: str, entry_id: str, *, limits: ReadLimits = NO_LIMITS
) -> LetterEntry | None:
    """Return the stream entry with this id, or None if it does not exist."""
    found = read_page(server, stream, first=entry_id, last=entry_id, limits=limits)
    return found.entries[0] if found.entries else None


def read_entries(
    server: str, stream: str, entry_ids: Sequence[str], limits: ReadLimits = NO_LIMITS
) -> list[LetterEntry]:
    """Return the entries with these ids, in the given order; missing ids are left out.

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
