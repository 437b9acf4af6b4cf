"""Pages of a stream's letters, optionally filtered.

Without a filter, a page is one read from Redis. A filter on indexed fields selects the letters in
PostgreSQL, then reads only these from Redis. A filter on payloads reads the stream until the page
is full or the time limit is reached.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from breakers.dead_letters.letters.batches import batch_by_size
from controlplane.core.errors import InvalidInput, NotFound

from .bulk import selection
from .letters import ids, presentation
from .letters.entries import NO_LIMITS, LetterEntry, ReadLimits
from .letters.filters import LetterFilter
from .models import LetterStream
from .redis_servers import reader

DEFAULT_PAGE, MAX_PAGE = 50, 200
PAGE_SECONDS = 2.0
"""Time limit for collecting a page."""
BRIEF = replace(presentation.LIST_LIMITS, fields=5000)
"""Read limits for lists; many fields have to be read, since the metadata fields come last."""
FETCHED_AT_ONCE = 50
FETCHED_BYTES = 1024 * 1024
"""Maximum total size of the letters fetched in one call after an index lookup."""


@dataclass(frozen=True)
class LetterPage:
    """A page of letters in the requested order.

    `looked_at` is the number of letters read to fill the page, `looked_to` the id of the last
    letter read. `next` is the cursor of the next page, empty on the last page.
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
    """Return up to `limit` matching letters after the entry with the id `cursor`.

    Long values are truncated unless `whole`. Raises :class:`InvalidInput` for an invalid cursor,
    :class:`ServerUnavailable` and :class:`ServerRefused`.
    """
    try:
        after = ids.to_entry_id(ids.to_position(cursor)) if cursor else ""
    except NotFound as error:
        raise InvalidInput({"cursor": ["Use the `next` link unchanged."]}) from error
    deadline = time.monotonic() + seconds
    limits = NO_LIMITS if whole or chosen.needs_payload else BRIEF
    iterate = _iterate_indexed if chosen.uses_index else _iterate_stream
    entries: list[LetterEntry] = []
    looked_at, size = 0, 0
    limits = replace(limits, entries=reader.AT_ONCE if chosen.needs_payload else limit)
    for entry, more in iterate(stream, chosen, after, newest_first, limits):
        looked_at += 1
        after = entry.id
        if chosen.matches(entry):
            if not whole:
                entry = presentation.truncate_entry(entry, presentation.LIST_LIMITS)
            entries.append(entry)
            size += sum(len(value) for _, value in entry.pairs)
        is_full = len(entries) >= limit or size >= reader.BUDGET
        if more and (is_full or time.monotonic() > deadline):
            return LetterPage(entries, after, looked_at, after)
        if is_full:
            break
    return LetterPage(entries, "", looked_at, after)


_Candidates = Iterator[tuple[LetterEntry, bool]]
"""Candidate letters, each with True if more candidates may follow."""


def _iterate_stream(
    stream: LetterStream, _chosen: LetterFilter, after: str, newest_first: bool, limits: ReadLimits
) -> _Candidates:
    for page in reader.iterate_pages(
        stream.server, stream.name, after=after, newest_first=newest_first, limits=limits
    ):
        for number, entry in enumerate(page.entries, 1):
            yield entry, number < len(page.entries) or page.more


def _iterate_indexed(
    stream: LetterStream, chosen: LetterFilter, after: str, newest_first: bool, limits: ReadLimits
) -> _Candidates:
    candidates = selection.filter_index(stream, chosen)
    candidates = candidates.order_by("-position" if newest_first else "position")
    beyond = "position__lt" if newest_first else "position__gt"
    at = ids.to_position(after) if after else ""
    while True:
        query = candidates.filter(**{beyond: at}) if at else candidates
        rows = list(query.values_list("position", "size_bytes")[:FETCHED_AT_ONCE])
        last = ids.to_entry_id(rows[-1][0]) if rows else ""
        for batch in batch_by_size(rows, max_bytes=FETCHED_BYTES, max_items=FETCHED_AT_ONCE):
            entry_ids = [ids.to_entry_id(position) for position in batch]
            for entry in reader.read_entries(stream.server, stream.name, entry_ids, limits):
                yield entry, entry.id != last or len(rows) == FETCHED_AT_ONCE
        if len(rows) < FETCHED_AT_ONCE:
            return
        at = rows[-1][0]
