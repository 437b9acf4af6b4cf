"""Selection of candidate letters in batches, by the index or by walking the stream."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from django.db.models import Q, QuerySet

from breakers.dead_letters.letters import ids
from breakers.dead_letters.letters.batches import batch_by_size
from breakers.dead_letters.letters.entries import LetterEntry
from breakers.dead_letters.letters.filters import LetterFilter
from breakers.dead_letters.models import Letter, LetterGroup, LetterStream
from breakers.dead_letters.redis_servers import reader
from breakers.dead_letters.redis_servers.reader import BUDGET, ReadLimits
from breakers.dead_letters.removals.settlement import MAX_BYTES, MAX_FIELDS

AT_ONCE = 50
LIMITS = ReadLimits(value_bytes=MAX_BYTES + 1, fields=MAX_FIELDS + 1, entries=AT_ONCE)
"""Letters are read whole; those that are too large only so far that this is known."""
OUTLINE = ReadLimits(value_bytes=1, fields=1, entries=1)


@dataclass(frozen=True)
class SelectedBatch:
    """Candidates, oldest first.

    Everything up to `position` was read, `count` letters; `more` if others may follow.
    """

    entries: list[LetterEntry]
    position: str
    count: int
    more: bool


def filter_index(stream: LetterStream, chosen: LetterFilter) -> QuerySet[Letter]:
    """Return the candidate letters by the index, unordered."""
    found = Letter.objects.filter(stream=stream)
    if chosen.fingerprint or chosen.error_type:
        groups = _group_ids(stream, chosen)
        found = (
            found.filter(group=groups[0]) if len(groups) == 1 else found.filter(group__in=groups)
        )
    if chosen.error:
        wanted = chosen.error
        alike = Q(error_type__icontains=wanted) | Q(fingerprint=wanted)
        named = LetterGroup.objects.filter(alike, stream=stream).values_list("pk", flat=True)
        found = found.filter(Q(error__icontains=wanted) | Q(group__in=list(named)))
    if chosen.after is not None:
        found = found.filter(failed_at__gte=chosen.after)
    if chosen.before is not None:
        found = found.filter(failed_at__lt=chosen.before)
    return found


def _group_ids(stream: LetterStream, chosen: LetterFilter) -> list[int]:
    """Return the groups, looked up first.

    Letters of a single group are in the order of its index.
    """
    groups = LetterGroup.objects.filter(stream=stream)
    if chosen.fingerprint:
        groups = groups.filter(fingerprint=chosen.fingerprint)
    if chosen.error_type:
        groups = groups.filter(error_type=chosen.error_type)
    return list(groups.values_list("pk", flat=True))


def read_batch(
    stream: LetterStream, chosen: LetterFilter, *, after: str, until: str, most: int = AT_ONCE
) -> SelectedBatch:
    """Read the next candidates behind the position `after` up to `until`.

    It reads `most` and a few megabytes at most.

    Raises :class:`ServerUnavailable` and :class:`ServerRefused`.
    """
    if chosen.uses_index:
        return _read_batch_by_index(stream, chosen, after, until, most)
    begin, end = (ids.to_entry_id(one) if one else "" for one in (after, until))
    limits = replace(LIMITS, entries=most)
    page = reader.read_page(stream.server, stream.name, after=begin, last=end or "+", limits=limits)
    at = page.entries[-1].position if page.entries else until
    return SelectedBatch(page.entries, at if page.more else until, len(page.entries), page.more)


def peek_next(
    stream: LetterStream, chosen: LetterFilter, *, after: str, until: str
) -> tuple[str, int] | None:
    """Return position and size in bytes of the next candidate, without reading it whole."""
    if chosen.uses_index:
        found = filter_index(stream, chosen).filter(position__gt=after, position__lte=until)
        return found.order_by("position").values_list("position", "size_bytes").first()
    begin, end = (ids.to_entry_id(one) if one else "" for one in (after, until))
    page = reader.read_page(
        stream.server, stream.name, after=begin, last=end or "+", limits=OUTLINE
    )
    return next(((one.position, one.size_bytes) for one in page.entries), None)


def _read_batch_by_index(
    stream: LetterStream, chosen: LetterFilter, after: str, until: str, most: int
) -> SelectedBatch:
    found = filter_index(stream, chosen).filter(position__gt=after, position__lte=until)
    rows = list(found.order_by("position").values_list("position", "size_bytes")[: most + 1])
    batches = batch_by_size(rows[:most], max_bytes=BUDGET, max_items=most)
    some = next(batches, [])
    more = len(some) < len(rows)
    entries = fetch_entries(stream, [ids.to_entry_id(one) for one in some])
    return SelectedBatch(entries, some[-1] if more else until, len(some), more)


def fetch_entries(
    stream: LetterStream, entry_ids: Iterable[str], limits: ReadLimits = LIMITS
) -> list[LetterEntry]:
    """Return the existing entries of these ids, in their order."""
    return reader.read_entries(stream.server, stream.name, list(entry_ids), limits)
