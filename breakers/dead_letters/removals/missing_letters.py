"""Errors for dead letters that are not in their stream."""

from breakers.dead_letters.letters import ids
from breakers.dead_letters.models import Departure, Gap, Letter, LetterStream
from breakers.dead_letters.redis_servers import samples
from controlplane.core.errors import Conflict, DomainError, NotFound

_LEFT = {
    "retry": "was retried",
    "discard": "was discarded",
    "purge": "was purged",
    "age": "was archived, being too old,",
    "length": "was archived, as there were too many,",
}
_LEAVING = {
    "retry": "is being retried",
    "discard": "is being discarded",
    "purge": "is being purged",
    "age": "is being archived",
    "length": "is being archived",
}


def missing_letter_error(stream: LetterStream, entry_id: str) -> DomainError:
    """Return :class:`Conflict` if it was removed or may have existed, else :class:`NotFound`.

    Raises :class:`NotFound` for an invalid id, and :class:`ServerUnavailable`.
    """
    position = ids.to_position(entry_id)
    departure = find_last_departure(stream, position)
    if departure is not None:
        return departed_error(departure)
    gone = Conflict(
        f"The dead letter {entry_id} is gone: it was taken away, and not through here.",
        gone=True,
    )
    if Letter.objects.filter(stream=stream, position=position).exists():
        return gone
    if Gap.objects.filter(stream=stream, first__lte=position, last__gte=position).exists():
        return gone
    # An id of the clock's that the stream may have given out before anybody looked.
    if ids.added_at(position) is not None:
        known = samples.sample_stream(stream.server, stream.name).last_given or stream.last
        if position <= known:
            return gone
    return NotFound(f"There is no dead letter {entry_id} in {stream.name}.")


def find_last_departure(stream: LetterStream, position: str) -> Departure | None:
    """Return the latest departure of this position, done or intended."""
    found = Departure.objects.filter(stream=stream, position=position).order_by("-id")
    return found.without_payload().first()


def find_other_removal(departure: Departure, new_id: str) -> Departure | None:
    """Return another intent that removed this letter in the same way."""
    others = Departure.objects.filter(
        stream=departure.stream_id, position=departure.position, action=departure.action
    )
    done = others.exclude(pk=departure.pk).filter(state=Departure.State.DONE, new_id=new_id)
    return done.defer("fields").order_by("-id").first()


def departed_error(departure: Departure) -> Conflict:
    """Return the error that says by whom a letter was or is being removed."""
    entry_id = ids.to_entry_id(departure.position)
    known = {"gone": True, "departure": departure.pk, "action": departure.action}
    if departure.state == Departure.State.INTENDED:
        said = f"{_LEAVING[departure.action]} by {departure.by}."
        return Conflict(f"The dead letter {entry_id} {said}", **{**known, "gone": False})
    if departure.state == Departure.State.GONE:
        return Conflict(
            f"The dead letter {entry_id} is gone: when {departure.by} asked to"
            f" {departure.action} it, somebody else had taken it away. The archive has it.",
            **known,
        )
    where = f" It is {departure.new_id} now." if departure.new_id else ""
    said = f"{_LEFT[departure.action]} by {departure.by}.{where}"
    return Conflict(f"The dead letter {entry_id} {said}", **known)
