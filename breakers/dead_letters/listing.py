"""Some of a stream's letters at a time, for a reader: all of them, or those that are meant.

Without a choice a page is one look into Redis. What the index can tell is asked of it, and only
those letters are fetched. What only the payload can tell is walked to, within a bounded time; the
page says how far that went.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from breakers.dead_letters.bulk import selecting
from breakers.dead_letters.letters import ids
from breakers.dead_letters.letters.entries import Entry
from breakers.dead_letters.letters.filters import Chosen
from breakers.dead_letters.places import reading
from breakers.dead_letters.places.reading import Limits
from breakers.models import LetterStream
from controlplane.core.errors import InvalidInput, NotFound

USUAL, MOST = 50, 200
SECONDS = 2.0
"""So long a page is worked on, however little was found by then."""
BRIEF = Limits(value_bytes=reading.SHOWN_BYTES, fields=5000)
"""Enough fields for those that failing added, which come last."""
WHOLE = Limits(value_bytes=64 * 1024 * 1024, fields=reading.MOST_FIELDS)
FETCHED_AT_ONCE = 50


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
    limit: int = USUAL,
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
            found.append(entry)
            spent += sum(len(value) for _, value in entry.pairs)
        is_enough = len(found) >= limit or spent >= reading.BUDGET
        if more and (is_enough or time.monotonic() > deadline):
            return Page(found, after, looked_at, after)
        if is_enough:
            break
    return Page(found, "", looked_at, after)


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
    at_once = reading.AT_ONCE if chosen.needs_payload else limit
    narrowed = Limits(limits.value_bytes, limits.fields, at_once)
    while True:
        looked = reading.page(
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
        for number, position in enumerate(rows):
            entry = reading.one(stream.server, stream.name, ids.entry_id(position), limits=limits)
            if entry is not None:
                yield entry, number < len(rows) - 1 or len(rows) == FETCHED_AT_ONCE
        if len(rows) < FETCHED_AT_ONCE:
            return
        at = rows[-1]


def _rows(stream: LetterStream, chosen: Chosen, at: str, newest_first: bool) -> list[str]:
    wanted = selecting.indexed(stream, chosen)
    if at:
        wanted = wanted.filter(**{f"position__{'lt' if newest_first else 'gt'}": at})
    ordered = wanted.order_by("-position" if newest_first else "position")
    return list(ordered.values_list("position", flat=True)[:FETCHED_AT_ONCE])
