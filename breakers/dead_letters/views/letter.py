"""One dead letter: what it says, what it went through, and what can be done with it now; and one
that has left, from the archive."""

import json
from datetime import datetime
from typing import Any

from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from breakers.dead_letters import history
from breakers.dead_letters.letters import ids, packing, presentation, redaction
from breakers.dead_letters.letters.entries import Entry
from breakers.dead_letters.models import Departure, LetterStream
from breakers.dead_letters.redis_servers import reader
from breakers.dead_letters.redis_servers.reader import Limits
from breakers.dead_letters.redis_servers.servers import ServerAway, ServerRefused
from breakers.dead_letters.removals import settlement
from controlplane.core.browser import PersonRequest, signed_in
from controlplane.core.clock import db_now
from controlplane.core.errors import NotFound
from controlplane.core.http.permissions import actor_of

from . import payload
from .stream import find, may_restore


@signed_in
@require_GET
def letter_page(request: PersonRequest, server: str, entry_id: str, name: str) -> HttpResponse:
    """One that has left meanwhile is shown as the archive has it."""
    now = db_now()
    stream = find(server, name, now)
    try:
        entry = read(stream, entry_id, payload.SHOWN)
    except (ServerAway, ServerRefused) as error:
        told = {"stream": stream, "entry_id": entry_id, "detail": error.detail, "now": now}
        return render(request, "breakers/dead_letters/letter_away.html", told, status=503)
    if entry is None:
        left = last_departure(stream, entry_id)
        if left is None:
            told = {"stream": stream, "entry_id": entry_id, "now": now}
            return render(request, "breakers/dead_letters/letter_gone.html", told, status=404)
        return HttpResponseRedirect(reverse("archived_letter_page", args=[left.pk]))
    return render(request, "breakers/dead_letters/letter.html", seen(request, stream, entry, now))


@signed_in
@require_GET
def archived_letter_page(request: PersonRequest, departure_id: int) -> HttpResponse:
    told = archived(request, departure(departure_id), db_now())
    return render(request, "breakers/dead_letters/archived.html", told)


def departure(departure_id: int) -> Departure:
    found = Departure.objects.select_related("stream").filter(pk=departure_id).first()
    if found is None:
        raise Http404
    return found


def archived(
    request: PersonRequest, left: Departure, now: datetime, *, revealed: bool = False
) -> dict[str, Any]:
    """What the page of a letter in the archive shows."""
    entry = within_limits(Entry(ids.entry_id(left.position), packing.unpack(left.fields)))
    hiding = None if revealed else _hiding()
    return {
        "now": now,
        "stream": left.stream,
        "left": left,
        "entry": entry,
        "shown": payload.of(entry, revealed=revealed),
        "revealed": revealed,
        "events": _told(history.of_departure(left, redaction=hiding)),
        "may_write": actor_of(request).may(settlement.SCOPE),
        "may_restore": may_restore(left, now),
    }


def seen(
    request: PersonRequest,
    stream: LetterStream,
    entry: Entry,
    now: datetime,
    *,
    revealed: bool = False,
) -> dict[str, Any]:
    """What the page of a letter shows."""
    hiding = _hiding()
    failed = hiding.entry(entry)
    return {
        "now": now,
        "stream": stream,
        "entry": entry,
        "error": payload.plain(failed.error[:4000]),
        "error_type": payload.plain(failed.error_type[:300]),
        "group_name": payload.plain(failed.group[:300]),
        "original_id": payload.plain(failed.original_id[:100]),
        "fingerprint": hiding.fingerprint(entry).digest,
        "added_at": ids.added_at(entry.position),
        "shown": payload.of(entry, revealed=revealed),
        "revealed": revealed,
        "delivery": settlement.delivery_of(stream),
        "under_way": _under_way(stream, entry),
        "events": _told(history.of(stream, entry, redaction=None if revealed else hiding)),
        "may_write": actor_of(request).may(settlement.SCOPE),
        "size_bytes": entry.size_bytes,
    }


def read(stream: LetterStream, entry_id: str, limits: Limits) -> Entry | None:
    """The entry; None if it is not there. Raises :class:`ServerAway`, :class:`ServerRefused`."""
    try:
        ids.position(entry_id)
    except NotFound as error:
        raise Http404 from error
    return reader.one(stream.server, stream.name, entry_id, limits=limits)


def last_departure(stream: LetterStream, entry_id: str) -> Departure | None:
    """How the letter of this id left last, or came back: as a restored one it has a new id."""
    position = ids.position(entry_id)
    rows = Departure.objects.without_payload().filter(stream=stream)
    return rows.filter(position=position).order_by("-id").first()


def within_limits(entry: Entry) -> Entry:
    """The same entry, cut as one that was read for a page."""
    pairs = entry.pairs[: payload.SHOWN.fields]
    most = payload.SHOWN.value_bytes
    return Entry(
        entry.id,
        tuple((name, value[:most]) for name, value in pairs),
        tuple(len(value) for _, value in pairs),
        len(entry.pairs),
    )


def _under_way(stream: LetterStream, entry: Entry) -> Departure | None:
    rows = Departure.objects.without_payload().filter(stream=stream, position=entry.position)
    return rows.filter(state=Departure.State.INTENDED).first()


def _told(events: list[history.Event]) -> list[dict[str, Any]]:
    """The events, the newest first, with their changes as text."""
    return [
        {
            "event": one,
            "changes": [
                {
                    "field": payload.plain(change.path),
                    "before": _text(change.before),
                    "after": _text(change.after),
                    "changed": True,
                }
                for change in one.changes
            ],
        }
        for one in reversed(events)
    ]


def _text(shown: presentation.Shown | None) -> str:
    if shown is None:
        return ""
    said = presentation.plain(shown)
    return payload.plain(said if said.strip() else json.dumps(said))[:2000]


def _hiding() -> redaction.Redaction:
    return redaction.configured_redaction()
