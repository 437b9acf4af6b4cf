"""What to answer when a dead letter is asked for that is not in its stream (any more)."""

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
    """:class:`Conflict` if it left or may have been there, else :class:`NotFound`.

    Raises :class:`NotFound` for what is no id, and :class:`servers.ServerAway`.
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
    """How the letter of this position left, or is about to; the latest, should there be several."""
    found = Departure.objects.filter(stream=stream, position=position).order_by("-id")
    return found.without_payload().first()


def find_other_removal(departure: Departure, new_id: str) -> Departure | None:
    """Whose intent it was that let this letter leave in the same way, if it was another's."""
    others = Departure.objects.filter(
        stream=departure.stream_id, position=departure.position, action=departure.action
    )
    done = others.exclude(pk=departure.pk).filter(state=Departure.State.DONE, new_id=new_id)
    return done.defer("fields").order_by("-id").first()


def departed_error(departure: Departure) -> Conflict:
    """That a letter left, or is leaving, and by whom."""
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
