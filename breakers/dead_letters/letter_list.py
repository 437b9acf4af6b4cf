"""Some of a stream's letters at a time, for a reader: all of them, or those that are meant.

Without a choice a page is one look into Redis. What the index can tell is asked of it, and only
those letters are fetched. What only the payload can tell is walked to, within a bounded time; the
page says how far that went.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from controlplane.core.errors import InvalidInput, NotFound

from .bulk import selection
from .letters import ids, presentation
from .letters.entries import Entry
from .letters.filters import Chosen
from .models import LetterStream
from .redis_servers import reader
from .redis_servers.reader import Limits

DEFAULT_PAGE, MAX_PAGE = 50, 200
SECONDS = 2.0
"""So long a page is worked on, however little was found by then."""
BRIEF = Limits(value_bytes=reader.SHOWN_BYTES, fields=5000, total_bytes=reader.SHOWN_IN_ALL)
"""Enough fields for those that failing added, which come last."""
WHOLE = reader.WHOLLY
FETCHED_AT_ONCE = 50
FETCHED_BYTES = 1024 * 1024
"""Of letters that are read whole, so many at a time by what the index says of their size."""
Told = TypeVar("Told")


@dataclass(frozen=True)
class Page:
    """Letters in the order asked for. `looked_at` were looked at to find them, to the id
    `looked_to`; `next` is where to go on, empty if that was all."""

    entries: list[Entry] = field(default_factory=list)
    next: str = ""
    looked_at: int = 0
    looked_to: str = ""

    @property
    def complete(self) -> bool:
        return not self.next


def page(
    stream: LetterStream,
    chosen: Chosen,
    *,
    cursor: str = "",
    limit: int = DEFAULT_PAGE,
    newest_first: bool = True,
    whole: bool = False,
    seconds: float = SECONDS,
) -> Page:
    """Up to `limit` letters that are meant, going on behind the entry whose id is `cursor`.

    Entries are brief, with the beginnings of long values, unless they are wanted `whole`. Raises
    :class:`InvalidInput` for a cursor that is none, :class:`servers.ServerAway` and
    :class:`servers.ServerRefused`.
    """
    after = checked_cursor(cursor)
    deadline = time.monotonic() + seconds
    limits = WHOLE if whole or chosen.needs_payload else BRIEF
    looks = _by_index if chosen.uses_index else _by_walking
    found: list[Entry] = []
    looked_at, spent = 0, 0
    for entry, more in looks(stream, chosen, after, newest_first, limits, limit):
        looked_at += 1
        after = entry.id
        if chosen.matches(entry):
            found.append(entry if whole else presentation.cut(entry, presentation.BRIEFLY))
            spent += sum(len(value) for _, value in found[-1].pairs)
        is_enough = len(found) >= limit or spent >= reader.BUDGET
        if more and (is_enough or time.monotonic() > deadline):
            return Page(found, after, looked_at, after)
        if is_enough:
            break
    return Page(found, "", looked_at, after)


def told(page: Page, tell: Callable[[Entry], Told], *, until: float) -> tuple[Page, list[Told]]:
    """What `tell` says of each letter of the page, as many as there is time for up to `until` on
    the monotonic clock, one at least; the page then ends with the last of them."""
    said: list[Told] = []
    for entry in page.entries:
        if said and time.monotonic() > until:
            at = page.entries[len(said) - 1].id
            return replace(page, entries=page.entries[: len(said)], next=at, looked_to=at), said
        said.append(tell(entry))
    return page, said


def checked_cursor(cursor: str) -> str:
    """The id as Redis writes it; empty if there is none. Raises :class:`InvalidInput`."""
    if not cursor:
        return ""
    try:
        return ids.entry_id(ids.position(cursor))
    except NotFound as error:
        raise InvalidInput({"cursor": ["Use `next` as it was given."]}) from error


_Looked = Iterator[tuple[Entry, bool]]
"""Entries that may be meant, each with whether there may be more behind it."""


def _by_walking(
    stream: LetterStream,
    chosen: Chosen,
    after: str,
    newest_first: bool,
    limits: Limits,
    limit: int,
) -> _Looked:
    at_once = reader.AT_ONCE if chosen.needs_payload else limit
    narrowed = replace(limits, entries=at_once)
    while True:
        looked = reader.page(
            stream.server, stream.name, after=after, newest_first=newest_first, limits=narrowed
        )
        last = len(looked.entries) - 1
        for number, entry in enumerate(looked.entries):
            yield entry, number < last or looked.more
        if not looked.more or not looked.entries:
            return
        after = looked.entries[-1].id


def _by_index(
    stream: LetterStream,
    chosen: Chosen,
    after: str,
    newest_first: bool,
    limits: Limits,
    limit: int,
) -> _Looked:
    at = ids.position(after) if after else ""
    while True:
        rows = _rows(stream, chosen, at, newest_first)
        last = ids.entry_id(rows[-1][0]) if rows else ""
        for some in _together(rows):
            for entry in reader.some(stream.server, stream.name, some, limits):
                yield entry, entry.id != last or len(rows) == FETCHED_AT_ONCE
        if len(rows) < FETCHED_AT_ONCE:
            return
        at = rows[-1][0]


def _together(rows: list[tuple[str, int]]) -> Iterator[list[str]]:
    """The ids of as many as may be in memory at once, one at least."""
    some: list[str] = []
    size = 0
    for position, size_bytes in rows:
        if some and size + size_bytes > FETCHED_BYTES:
            yield some
            some, size = [], 0
        some.append(ids.entry_id(position))
        size += size_bytes
    if some:
        yield some


def _rows(
    stream: LetterStream, chosen: Chosen, at: str, newest_first: bool
) -> list[tuple[str, int]]:
    """Positions and sizes."""
    wanted = selection.indexed(stream, chosen)
    if at:
        wanted = wanted.filter(**{f"position__{'lt' if newest_first else 'gt'}": at})
    ordered = wanted.order_by("-position" if newest_first else "position")
    return list(ordered.values_list("position", "size_bytes")[:FETCHED_AT_ONCE])
