"""Eligibility of letters for a bulk job, and its count before the job begins."""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, OuterRef, QuerySet

from breakers.dead_letters.letters import ids
from breakers.dead_letters.letters.entries import LetterEntry
from breakers.dead_letters.letters.filters import LetterFilter
from breakers.dead_letters.models import Departure, Letter, LetterStream
from breakers.dead_letters.monitoring import indexer
from breakers.dead_letters.removals.settlement import MAX_BYTES, MAX_FIELDS

from . import selection

TOO_OFTEN, IN_FLIGHT = "retried_too_often", "in_flight"
TOO_MANY_FIELDS, TOO_LARGE = "too_many_fields", "too_large"
TOO_SLOW = "too_slow"
"""The server responds, but does not accept or return the letter in time; known only after tries."""
END = ids.to_position(f"{ids.MAX_PART}-{ids.MAX_PART}")
"""The last possible position."""
AT_ONCE = 200


@dataclass(frozen=True)
class EligibilityCounts:
    """Numbers of eligible and ineligible letters, the latter by reason in `why`.

    `complete` is False if there was only time for the first `looked_at`.
    """

    eligible: int
    ineligible: int
    why: Mapping[str, int]
    complete: bool
    looked_at: int


def skip_reason(entry: LetterEntry, action: str, most_retries: int) -> str:
    """Return why a job skips this letter; empty if it is eligible."""
    return _skip_reason(entry.fields_total, entry.size_bytes, entry.retries, action, most_retries)


def count_eligible(
    stream: LetterStream,
    chosen: LetterFilter,
    action: str,
    most_retries: int,
    now: datetime,
    seconds: float = 5.0,
) -> EligibilityCounts:
    """Count the selected letters, for about `seconds` at most.

    Raises :class:`ServerUnavailable` and :class:`ServerRefused`.
    """
    deadline = time.monotonic() + seconds
    known = indexer.catch_up(stream, now, seconds=seconds / 2)
    look = _count_by_reading if chosen.needs_payload else _count_by_index
    found, looked_at, complete = look(stream, chosen, action, most_retries, deadline)
    eligible = found.pop("", 0)
    why = {name: number for name, number in sorted(found.items()) if number}
    return EligibilityCounts(eligible, sum(why.values()), why, complete and known, looked_at)


def _count_by_reading(
    stream: LetterStream, chosen: LetterFilter, action: str, most_retries: int, deadline: float
) -> tuple[Counter[str], int, bool]:
    """Return counts by skip reason, the number of letters read, and True if that was all.

    The empty reason means eligible.
    """
    in_flight = set(_open_intents(stream).values_list("position", flat=True))
    found: Counter[str] = Counter()
    looked_at, after, more = 0, "", True
    while more and time.monotonic() < deadline:
        looked = selection.read_batch(stream, chosen, after=after, until=END)
        for entry in looked.entries:
            if chosen.matches(entry):
                flies = entry.position in in_flight
                found[IN_FLIGHT if flies else skip_reason(entry, action, most_retries)] += 1
        looked_at, after, more = looked_at + looked.count, looked.position, looked.more
    return found, looked_at, not more


def _count_by_index(
    stream: LetterStream, chosen: LetterFilter, action: str, most_retries: int, deadline: float
) -> tuple[Counter[str], int, bool]:
    """Return the same by the index.

    Only large letters are read, as only they can have too many fields: each field takes a byte at
    least.
    """
    meant = selection.filter_index(stream, chosen)
    flies = Exists(_open_intents(stream).filter(position=OuterRef("position")))
    free = meant.exclude(flies)
    found = Counter({IN_FLIGHT: meant.filter(flies).count()})
    small = free.filter(size_bytes__lte=MAX_FIELDS)
    if action == Departure.Action.RETRY:
        found[TOO_OFTEN] = small.filter(retries__gte=most_retries).count()
    found[""] = small.count() - found[TOO_OFTEN]
    complete, after = True, ""
    large = free.filter(size_bytes__gt=MAX_FIELDS).order_by("position")
    while rows := _fetch_rows(large, after):
        if time.monotonic() > deadline:
            complete = False
            break
        found.update(_count_large(stream, rows, action, most_retries))
        after = rows[-1].position
    return found, sum(found.values()), complete


def _count_large(
    stream: LetterStream, rows: list[Letter], action: str, most_retries: int
) -> Counter[str]:
    by_id = {ids.to_entry_id(row.position): row for row in rows}
    outlines = selection.fetch_entries(stream, by_id, selection.OUTLINE)
    known = [(by_id[entry.id], entry.fields_total) for entry in outlines]
    return Counter(
        _skip_reason(fields, row.size_bytes, row.retries, action, most_retries)
        for row, fields in known
    )


def _fetch_rows(letters: QuerySet[Letter], after: str) -> list[Letter]:
    return list(letters.filter(position__gt=after)[:AT_ONCE])


def _open_intents(stream: LetterStream) -> QuerySet[Departure]:
    return Departure.objects.filter(stream=stream, state=Departure.State.INTENDED)


def _skip_reason(fields: int, size_bytes: int, retries: int, action: str, most_retries: int) -> str:
    if fields > MAX_FIELDS:
        return TOO_MANY_FIELDS
    if size_bytes > MAX_BYTES:
        return TOO_LARGE
    if action == Departure.Action.RETRY and retries >= most_retries:
        return TOO_OFTEN
    return ""
