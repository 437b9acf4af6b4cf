"""Pages of a stream's letters, all or filtered.

Without a filter a page is one read from Redis. What the index can tell is looked up there, and only
those letters are fetched. What only the payload can tell is searched within a bounded time; the
page says how far that went.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from breakers.dead_letters.letters.batches import batch_by_size
from controlplane.core.errors import InvalidInput, NotFound

from .bulk import selection
from .letters import ids, presentation
from .letters.entries import LetterEntry
from .letters.filters import LetterFilter
from .models import LetterStream
from .redis_servers import reader
from .redis_servers.reader import ReadLimits

DEFAULT_PAGE, MAX_PAGE = 50, 200
PAGE_SECONDS = 2.0
"""Time after which a page ends, however few letters were found."""
BRIEF = ReadLimits(value_bytes=reader.SHOWN_BYTES, fields=5000, total_bytes=reader.SHOWN_IN_ALL)
"""Read limits of a list, with enough fields for the metadata, which comes last."""
WHOLE = reader.NO_LIMITS
FETCHED_AT_ONCE = 50
FETCHED_BYTES = 1024 * 1024
"""Size of whole letters that are fetched at a time, by the index."""
Told = TypeVar("Told")


@dataclass(frozen=True)
class LetterPage:
    """Letters in the requested order.

    `looked_at` were read to find them, up to the id `looked_to`; `next` is the cursor of the next
    page, empty if there is none.
    """

    entries: list[LetterEntry] = field(default_factory=list)
    next: str = ""
    looked_at: int = 0
    looked_to: str = ""

    @property
    def complete(self) -> bool:
        return not self.next


def read_page(
    stream: LetterStream,
    chosen: LetterFilter,
    *,
    cursor: str = "",
    limit: int = DEFAULT_PAGE,
    newest_first: bool = True,
    whole: bool = False,
    seconds: float = PAGE_SECONDS,
) -> LetterPage:
    """Return up to `limit` selected letters behind the entry whose id is `cursor`.

    Entries have only the beginnings of long values unless `whole`. Raises :class:`InvalidInput` for
    an invalid cursor, :class:`ServerUnavailable` and :class:`ServerRefused`.
    """
    after = parse_cursor(cursor)
    deadline = time.monotonic() + seconds
    limits = WHOLE if whole or chosen.needs_payload else BRIEF
    looks = _walk_index if chosen.uses_index else _walk_stream
    found: list[LetterEntry] = []
    looked_at, spent = 0, 0
    for entry, more in looks(stream, chosen, after, newest_first, limits, limit):
        looked_at += 1
        after = entry.id
        if chosen.matches(entry):
            found.append(
                entry if whole else presentation.truncate_entry(entry, presentation.LIST_LIMITS)
            )
            spent += sum(len(value) for _, value in found[-1].pairs)
        is_enough = len(found) >= limit or spent >= reader.BUDGET
        if more and (is_enough or time.monotonic() > deadline):
            return LetterPage(found, after, looked_at, after)
        if is_enough:
            break
    return LetterPage(found, "", looked_at, after)


def render_until(
    page: LetterPage, tell: Callable[[LetterEntry], Told], *, until: float
) -> tuple[LetterPage, list[Told]]:
    """Render the letters of the page with `tell` until the monotonic time `until`, one at least.

    The returned page ends with the last rendered letter.
    """
    said: list[Told] = []
    for entry in page.entries:
        if said and time.monotonic() > until:
            at = page.entries[len(said) - 1].id
            return replace(page, entries=page.entries[: len(said)], next=at, looked_to=at), said
        said.append(tell(entry))
    return page, said


def parse_cursor(cursor: str) -> str:
    """Return the id as Redis writes it; empty if there is none. Raises :class:`InvalidInput`."""
    if not cursor:
        return ""
    try:
        return ids.to_entry_id(ids.to_position(cursor))
    except NotFound as error:
        raise InvalidInput({"cursor": ["Use `next` as it was given."]}) from error


_Looked = Iterator[tuple[LetterEntry, bool]]
"""Candidates, each with True if others may follow."""


def _walk_stream(
    stream: LetterStream,
    chosen: LetterFilter,
    after: str,
    newest_first: bool,
    limits: ReadLimits,
    limit: int,
) -> _Looked:
    at_once = reader.AT_ONCE if chosen.needs_payload else limit
    narrowed = replace(limits, entries=at_once)
    while True:
        looked = reader.read_page(
            stream.server, stream.name, after=after, newest_first=newest_first, limits=narrowed
        )
        last = len(looked.entries) - 1
        for number, entry in enumerate(looked.entries):
            yield entry, number < last or looked.more
        if not looked.more or not looked.entries:
            return
        after = looked.entries[-1].id


def _walk_index(
    stream: LetterStream,
    chosen: LetterFilter,
    after: str,
    newest_first: bool,
    limits: ReadLimits,
    limit: int,
) -> _Looked:
    at = ids.to_position(after) if after else ""
    while True:
        rows = _index_rows(stream, chosen, at, newest_first)
        last = ids.to_entry_id(rows[-1][0]) if rows else ""
        for some in batch_by_size(rows, max_bytes=FETCHED_BYTES, max_items=FETCHED_AT_ONCE):
            entry_ids = [ids.to_entry_id(position) for position in some]
            for entry in reader.read_entries(stream.server, stream.name, entry_ids, limits):
                yield entry, entry.id != last or len(rows) == FETCHED_AT_ONCE
        if len(rows) < FETCHED_AT_ONCE:
            return
        at = rows[-1][0]


def _index_rows(
    stream: LetterStream, chosen: LetterFilter, at: str, newest_first: bool
) -> list[tuple[str, int]]:
    """Positions and sizes."""
    wanted = selection.filter_index(stream, chosen)
    if at:
        wanted = wanted.filter(**{f"position__{'lt' if newest_first else 'gt'}": at})
    ordered = wanted.order_by("-position" if newest_first else "position")
    return list(ordered.values_list("position", "size_bytes")[:FETCHED_AT_ONCE])
