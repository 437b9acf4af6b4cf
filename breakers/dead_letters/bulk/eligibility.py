"""Eligibility of letters for a bulk job, and the counts of a dry run."""

import time
from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, OuterRef, QuerySet

from breakers.dead_letters.letters import ids
from breakers.dead_letters.letters.entries import OUTLINE, LetterEntry
from breakers.dead_letters.letters.field_edits import FieldEdit
from breakers.dead_letters.letters.filters import LetterFilter
from breakers.dead_letters.letters.redaction import configured_redaction
from breakers.dead_letters.models import Departure, LetterStream
from breakers.dead_letters.monitoring import indexer
from breakers.dead_letters.redis_servers import reader
from breakers.dead_letters.removals.settlement import MAX_BYTES, MAX_FIELDS

from . import selection

TOO_OFTEN, IN_FLIGHT = "retried_too_often", "in_flight"
TOO_MANY_FIELDS, TOO_LARGE = "too_many_fields", "too_large"
FAILED_AGAIN = "failed_again"
"""Key of the eligible letters that were retried before, among the counts by reason."""
NOT_EDITED = "not_edited"
"""Skip reason: the job's edit does not apply to the letter, or changes nothing in it."""
TOO_SLOW = "too_slow"
"""Skip reason: the server repeatedly failed to accept or return the letter in time."""
SKIP_WORDS = {
    TOO_OFTEN: "retried too often",
    IN_FLIGHT: "being changed by someone else",
    TOO_MANY_FIELDS: "more than 3,500 fields",
    TOO_LARGE: "larger than 64 MB",
    TOO_SLOW: "too large to move in time",
    NOT_EDITED: "not changed by the edit",
}
AT_ONCE = 200


@dataclass(frozen=True)
class EligibilityCounts:
    """Numbers of letters that a bulk job can remove (`eligible`) and has to skip (`ineligible`).

    `failed_again` counts the eligible letters that were retried before, `why` skipped letters by
    reason; `complete` is False if time ran out after `looked_at` letters.
    """

    eligible: int
    failed_again: int
    ineligible: int
    why: dict[str, int]
    complete: bool
    looked_at: int


def skip_reason(
    fields: int, size_bytes: int, retries: int, *, action: str, most_retries: int
) -> str:
    """Return the reason why a bulk job skips a letter; empty if it does not.

    `fields` is the letter's number of fields, `retries` the number of its earlier retries.
    """
    if fields > MAX_FIELDS:
        return TOO_MANY_FIELDS
    if size_bytes > MAX_BYTES:
        return TOO_LARGE
    if action == Departure.Action.RETRY and retries >= most_retries:
        return TOO_OFTEN
    return ""


def entry_skip_reason(
    entry: LetterEntry, *, action: str, most_retries: int, edit: FieldEdit | None = None
) -> str:
    """Return the reason why a bulk job skips this letter; empty if it does not."""
    figures = (entry.fields_total, entry.size_bytes, entry.retries)
    why = skip_reason(*figures, action=action, most_retries=most_retries)
    if not why and edit is not None and edit.apply(entry, configured_redaction()) is None:
        return NOT_EDITED
    return why


def count_eligible(
    stream: LetterStream,
    chosen: LetterFilter,
    action: str,
    most_retries: int,
    now: datetime,
    seconds: float = 5.0,
    edit: FieldEdit | None = None,
) -> EligibilityCounts:
    """Count the letters that a bulk job could remove or would skip, for at most about `seconds`.

    Raises :class:`ServerUnavailable` and :class:`ServerRefused`.
    """
    deadline = time.monotonic() + seconds
    is_indexed = indexer.catch_up(stream, now, seconds=seconds / 2)
    if chosen.needs_payload or edit is not None:
        counts, looked_at, complete = _count_by_reading(
            stream, chosen, action, most_retries, deadline, edit
        )
    else:
        counts, looked_at, complete = _count_by_index(
            stream, chosen, action, most_retries, deadline
        )
    eligible, failed_again = counts.pop("", 0), counts.pop(FAILED_AGAIN, 0)
    why = {name: number for name, number in sorted(counts.items()) if number}
    complete = complete and is_indexed
    return EligibilityCounts(eligible, failed_again, sum(why.values()), why, complete, looked_at)


def _count_by_reading(
    stream: LetterStream,
    chosen: LetterFilter,
    action: str,
    most_retries: int,
    deadline: float,
    edit: FieldEdit | None,
) -> tuple[Counter[str], int, bool]:
    """Count the matching letters in the stream by the reason to skip them, empty if eligible.

    Eligible letters that were retried before are also counted as `FAILED_AGAIN`. Return these
    counts, the number of letters read, and False if time ran out before the end.
    """
    in_flight = set(_open_intents(stream).values_list("position", flat=True))
    counts: Counter[str] = Counter()
    looked_at, after, more = 0, "", True
    while more and time.monotonic() < deadline:
        batch = selection.read_batch(stream, chosen, after=after, until=ids.MAX_POSITION)
        for entry in batch.entries:
            if chosen.matches(entry):
                why = entry_skip_reason(entry, action=action, most_retries=most_retries, edit=edit)
                why = IN_FLIGHT if entry.position in in_flight else why
                counts[why] += 1
                counts[FAILED_AGAIN] += not why and entry.retries > 0
        looked_at, after, more = looked_at + batch.count, batch.position, batch.more
    return counts, looked_at, not more


def _count_by_index(
    stream: LetterStream, chosen: LetterFilter, action: str, most_retries: int, deadline: float
) -> tuple[Counter[str], int, bool]:
    """Count the matching letters as :func:`_count_by_reading` does, but from the index.

    Only large letters are read from Redis, to count their fields.
    """
    matching = selection.filter_index(stream, chosen)
    has_intent = Exists(_open_intents(stream).filter(position=OuterRef("position")))
    free = matching.exclude(has_intent)
    counts = Counter({IN_FLIGHT: matching.filter(has_intent).count()})
    small = free.filter(size_bytes__lte=MAX_FIELDS)
    if action == Departure.Action.RETRY:
        counts[TOO_OFTEN] = small.filter(retries__gte=most_retries).count()
    counts[""] = small.count() - counts[TOO_OFTEN]
    counts[FAILED_AGAIN] = small.filter(retries__gt=0).count() - counts[TOO_OFTEN]
    looked_at = counts[IN_FLIGHT] + counts[TOO_OFTEN] + counts[""]
    after = ""
    large = free.filter(size_bytes__gt=MAX_FIELDS).order_by("position")
    while rows := list(large.filter(position__gt=after)[:AT_ONCE]):
        if time.monotonic() > deadline:
            return counts, looked_at, False
        by_id = {ids.to_entry_id(row.position): row for row in rows}
        for entry in reader.read_entries(stream.server, stream.name, list(by_id), OUTLINE):
            row = by_id[entry.id]
            figures = (entry.fields_total, row.size_bytes, row.retries)
            why = skip_reason(*figures, action=action, most_retries=most_retries)
            counts[why] += 1
            counts[FAILED_AGAIN] += not why and row.retries > 0
            looked_at += 1
        after = rows[-1].position
    return counts, looked_at, True


def _open_intents(stream: LetterStream) -> QuerySet[Departure]:
    return Departure.objects.filter(stream=stream, state=Departure.State.INTENDED)
