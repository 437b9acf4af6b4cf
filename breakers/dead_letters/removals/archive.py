"""Archive of removed letters, which are kept whole for 30 days.

`done_at` is the time when a letter was removed, or when it was found missing.
"""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Count

from breakers.dead_letters.models import Departure, LetterStream
from controlplane.core.actors import system_actor
from controlplane.core.audit import services as audit
from controlplane.core.errors import NotFound

ARCHIVED_FOR = timedelta(days=30)
"""Retention of the archive, which screens and messages mention."""
AT_ONCE = 500
RETENTION = system_actor("dlq-retention")
ENDED = (Departure.State.DONE, Departure.State.GONE, Departure.State.RESTORED)


def find_departure(departure_id: int) -> Departure:
    """Return an archived removal by id, with stream and payload. Raises :class:`NotFound`."""
    departure = Departure.objects.select_related("stream").filter(pk=departure_id).first()
    if departure is None:
        raise _not_found(departure_id)
    return departure


def lock_departure(departure_id: int) -> Departure:
    """Lock the row of a removal's stream, then the removal, until commit; return the removal.

    Raises :class:`NotFound`.
    """
    stream_id = Departure.objects.filter(pk=departure_id).values_list("stream", flat=True).first()
    if stream_id is None:
        raise _not_found(departure_id)
    stream = LetterStream.objects.select_for_update().get(pk=stream_id)
    departure = Departure.objects.select_for_update().filter(pk=departure_id).first()
    if departure is None:
        raise _not_found(departure_id)
    departure.stream = stream
    return departure


def restorable_until(departure: Departure) -> datetime | None:
    """Return the time until which a letter can be restored; None after a retry or a restore."""
    states = Departure.State
    is_in_origin = departure.state == states.DONE and departure.action == Departure.Action.RETRY
    is_removed = departure.state in (states.DONE, states.GONE) and not is_in_origin
    return departure.done_at + ARCHIVED_FOR if is_removed and departure.done_at else None


def is_restorable(departure: Departure, now: datetime) -> bool:
    until = restorable_until(departure)
    return until is not None and until > now


@transaction.atomic
def purge_batch(now: datetime) -> int:
    """Delete a batch of removals that were archived long enough, oldest first; return how many."""
    # `intended_at` is never later than `done_at`, and is indexed.
    outdated = Departure.objects.filter(
        state__in=ENDED, done_at__lte=now - ARCHIVED_FOR, intended_at__lte=now - ARCHIVED_FOR
    )
    rows = outdated.select_for_update(skip_locked=True).order_by("intended_at")
    ids = list(rows.values_list("pk", flat=True)[:AT_ONCE])
    if not ids:
        return 0
    wanted = Departure.objects.filter(pk__in=ids)
    by_stream = wanted.values_list("stream__server", "stream__name").annotate(rows=Count("pk"))
    streams = {f"{server}/{name}": rows for server, name, rows in by_stream.order_by()}
    wanted.delete()
    audit.record(
        actor=RETENTION,
        action="dead_letter.archived",
        target="dlq",
        reason=f"Letters are deleted {ARCHIVED_FOR.days} days after their removal.",
        after={"forgotten": len(ids), "streams": streams},
        now=now,
    )
    return len(ids)


def _not_found(departure_id: int) -> NotFound:
    return NotFound(f"The archive has no dead letter {departure_id}, or no longer has it.")
