"""Batches of letters that may match a filter, found by the index or by reading the stream."""

from dataclasses import dataclass, replace

from django.db.models import Q, QuerySet

from breakers.dead_letters.letters import ids
from breakers.dead_letters.letters.batches import batch_by_size
from breakers.dead_letters.letters.entries import OUTLINE, LetterEntry, ReadLimits
from breakers.dead_letters.letters.filters import LetterFilter
from breakers.dead_letters.models import Letter, LetterStream
from breakers.dead_letters.redis_servers import reader
from breakers.dead_letters.redis_servers.reader import BUDGET, EntryPage
from breakers.dead_letters.removals.settlement import MAX_BYTES, MAX_FIELDS

AT_ONCE = 50
LIMITS = ReadLimits(value_bytes=MAX_BYTES + 1, fields=MAX_FIELDS + 1, entries=AT_ONCE)
"""Read limits just above those of removable letters, so that larger letters are detected."""


@dataclass(frozen=True)
class SelectedBatch:
    """Letters that may match a filter, oldest first.

    `count` is the number of letters that were read, `position` the position of the last of them;
    `more` is True if others may follow.
    """

    entries: list[LetterEntry]
    position: str
    count: int
    more: bool


def filter_index(stream: LetterStream, chosen: LetterFilter) -> QuerySet[Letter]:
    """Return the index rows of letters that may match the filter, unordered."""
    rows, groups = Letter.objects.filter(stream=stream), stream.groups.all()
    if chosen.fingerprint or chosen.error_type:
        if chosen.fingerprint:
            groups = groups.filter(fingerprint=chosen.fingerprint)
        if chosen.error_type:
            groups = groups.filter(error_type=chosen.error_type)
        # The ids are looked up first, so that the letters of one group are read in index order.
        pks = list(groups.values_list("pk", flat=True))
        rows = rows.filter(group=pks[0]) if len(pks) == 1 else rows.filter(group__in=pks)
    if text := chosen.error:
        alike = stream.groups.filter(Q(error_type__icontains=text) | Q(fingerprint=text))
        pks = list(alike.values_list("pk", flat=True))
        rows = rows.filter(Q(error__icontains=text) | Q(group__in=pks))
    if chosen.ids:
        rows = rows.filter(position__in=[ids.to_position(one) for one in chosen.ids])
    if chosen.after is not None:
        rows = rows.filter(failed_at__gte=chosen.after)
    if chosen.before is not None:
        rows = rows.filter(failed_at__lt=chosen.before)
    return rows


def read_batch(
    stream: LetterStream, chosen: LetterFilter, *, after: str, until: str, most: int = AT_ONCE
) -> SelectedBatch:
    """Read the next letters that may match the filter, after the position `after` up to `until`.

    At most `most` letters and a few megabytes are read. Raises :class:`ServerUnavailable` and
    :class:`ServerRefused`.
    """
    if not chosen.uses_index:
        page = _read_range(stream, after, until, replace(LIMITS, entries=most))
        at = page.entries[-1].position if page.entries and page.more else until
        return SelectedBatch(page.entries, at, len(page.entries), page.more)
    candidates = _filter_range(stream, chosen, after, until)
    rows = list(candidates.values_list("position", "size_bytes")[: most + 1])
    batch = next(batch_by_size(rows[:most], max_bytes=BUDGET, max_items=most), [])
    more = len(batch) < len(rows)
    entry_ids = [ids.to_entry_id(one) for one in batch]
    entries = reader.read_entries(stream.server, stream.name, entry_ids, LIMITS)
    return SelectedBatch(entries, batch[-1] if more else until, len(batch), more)


def peek_next(
    stream: LetterStream, chosen: LetterFilter, *, after: str, until: str
) -> tuple[str, int] | None:
    """Return position and size in bytes of the next letter that may match the filter, or None."""
    if chosen.uses_index:
        candidates = _filter_range(stream, chosen, after, until)
        return candidates.values_list("position", "size_bytes").first()
    page = _read_range(stream, after, until, OUTLINE)
    return next(((one.position, one.size_bytes) for one in page.entries), None)


def _filter_range(
    stream: LetterStream, chosen: LetterFilter, after: str, until: str
) -> QuerySet[Letter]:
    rows = filter_index(stream, chosen).filter(position__gt=after, position__lte=until)
    return rows.order_by("position")


def _read_range(stream: LetterStream, after: str, until: str, limits: ReadLimits) -> EntryPage:
    begin, end = (ids.to_entry_id(one) if one else "" for one in (after, until))
    return reader.read_page(stream.server, stream.name, after=begin, last=end or "+", limits=limits)
