"""Errors for dead letters that are not in their stream any more."""

from breakers.dead_letters.letters import ids
from breakers.dead_letters.models import Departure, Gap, Letter, LetterStream
from breakers.dead_letters.redis_servers import samples
from controlplane.core.errors import Conflict, DomainError, NotFound

_LEFT = {
    "retry": "was retried",
    "discard": "was discarded",
    "purge": "was purged",
    "age": "was archived as too old",
    "length": "was archived, because there were too many,",
}
_LEAVING = {
    "retry": "is being retried",
    "discard": "is being discarded",
    "purge": "is being purged",
    "age": "is being archived",
    "length": "is being archived",
}


def missing_letter_error(stream: LetterStream, entry_id: str) -> DomainError:
    """Return :class:`Conflict` if the missing letter may have existed, else :class:`NotFound`.

    Raises :class:`NotFound` for an invalid id, and :class:`ServerUnavailable`.
    """
    position = ids.to_position(entry_id)
    departure = find_last_departure(stream, position)
    if departure is not None:
        return departed_error(departure)
    existed = (
        Letter.objects.filter(stream=stream, position=position).exists()
        or Gap.objects.filter(stream=stream, first__lte=position, last__gte=position).exists()
    )
    # If the id is a time, the stream may have assigned it before it was discovered.
    if not existed and ids.added_at(position) is not None:
        sample = samples.sample_stream(stream.server, stream.name)
        existed = position <= (sample.last_given or stream.last)
    if existed:
        return Conflict(
            f"The dead letter {entry_id} is gone: another Redis client removed it.",
            gone=True,
        )
    return NotFound(f"There is no dead letter {entry_id} in {stream.name}.")


def find_last_departure(stream: LetterStream, position: str) -> Departure | None:
    """Return the latest removal, settled or intended, of the letter at this position."""
    found = Departure.objects.filter(stream=stream, position=position).order_by("-id")
    return found.without_payload().first()


def find_other_removal(departure: Departure, new_id: str) -> Departure | None:
    """Return another settled removal of the same letter with this action and `new_id`, or None."""
    rows = Departure.objects.filter(stream=departure.stream_id, position=departure.position)
    rows = rows.filter(action=departure.action, state=Departure.State.DONE, new_id=new_id)
    return rows.exclude(pk=departure.pk).defer("fields").order_by("-id").first()


def departed_error(departure: Departure) -> Conflict:
    """Return an error whose message names who removed, or is removing, the letter."""
    action, by = departure.action, departure.by
    is_open = departure.state == Departure.State.INTENDED
    if is_open:
        text = f"{_LEAVING[action]} by {by}."
    elif departure.state == Departure.State.GONE:
        text = (
            f"is gone: another Redis client had removed it before {by} could {action} it."
            " The archive has it."
        )
    else:
        where = f" Its new id is {departure.new_id}." if departure.new_id else ""
        text = f"{_LEFT[action]} by {by}.{where}"
    return Conflict(
        f"The dead letter {departure.entry_id} {text}",
        gone=not is_open,
        departure=departure.pk,
        action=action,
    )
