"""Pages of a letter in its stream and of a removed letter in the archive."""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_GET

from breakers.dead_letters import history
from breakers.dead_letters.letters import ids, presentation, redaction
from breakers.dead_letters.letters.differences import FieldChange
from breakers.dead_letters.letters.entries import LetterEntry, ReadLimits
from breakers.dead_letters.models import Departure, LetterStream
from breakers.dead_letters.redis_servers import reader
from breakers.dead_letters.redis_servers.servers import ServerRefused, ServerUnavailable
from breakers.dead_letters.removals import archive, execution, missing_letters
from controlplane.core.clock import db_now
from controlplane.core.errors import NotFound
from controlplane.core.page_responses import PersonRequest, signed_in

from . import payload
from .stream import authority_context, find_stream_or_404


@signed_in
@require_GET
def letter_page(request: PersonRequest, server: str, entry_id: str, name: str) -> HttpResponse:
    """Show a letter; redirect to the archive if it was removed."""
    now = db_now()
    stream = find_stream_or_404(server, name, now)
    try:
        entry = read_letter(stream, entry_id, payload.PAGE_LIMITS)
    except (ServerUnavailable, ServerRefused) as error:
        context = {"stream": stream, "entry_id": entry_id, "detail": error.detail, "now": now}
        return render(request, "breakers/dead_letters/letter_unreachable.html", context, status=503)
    if entry is None:
        position = ids.to_position(entry_id)
        departure = missing_letters.find_last_departure(stream, position)
        if departure is None:
            context = {"stream": stream, "entry_id": entry_id, "now": now}
            template = "breakers/dead_letters/letter_not_found.html"
            return render(request, template, context, status=404)
        return HttpResponseRedirect(reverse("archived_letter_page", args=[departure.pk]))
    context = letter_context(request, stream, entry, now)
    return render(request, "breakers/dead_letters/letter.html", context)


@signed_in
@require_GET
def archived_letter_page(request: PersonRequest, departure_id: int) -> HttpResponse:
    departure = get_object_or_404(Departure.objects.select_related("stream"), pk=departure_id)
    context = archived_context(request, departure, db_now())
    return render(request, "breakers/dead_letters/archived_letter.html", context)


def archived_context(
    request: PersonRequest, left: Departure, now: datetime, *, revealed: bool = False
) -> dict[str, Any]:
    entry = truncate_for_page(left.entry)
    hiding = None if revealed else redaction.configured_redaction()
    return {
        "now": now,
        "stream": left.stream,
        "left": left,
        "entry": entry,
        "shown": payload.build_payload(entry, revealed=revealed),
        "sent": _build_edited(left, revealed=revealed),
        "original_title": "Message before the edits" if left.edited else "Message",
        "failed_again_id": ids.to_entry_id(left.failed_again_as) if left.failed_again_as else "",
        "revealed": revealed,
        "events": _events_context(history.list_events(left.stream, left.entry, redaction=hiding)),
        **authority_context(request, left.stream),
        "may_restore": archive.is_restorable(left, now),
    }


def _build_edited(left: Departure, *, revealed: bool) -> dict[str, Any] | None:
    """Return the edited message that was sent, as `build_payload` does; None without edits."""
    if left.edited_pairs is None:
        return None
    edited = truncate_for_page(LetterEntry(left.entry_id, left.edited_pairs))
    return payload.build_payload(edited, revealed=revealed)


def letter_context(
    request: PersonRequest,
    stream: LetterStream,
    entry: LetterEntry,
    now: datetime,
    *,
    revealed: bool = False,
) -> dict[str, Any]:
    hiding = redaction.configured_redaction()
    failed = hiding.redact_entry(entry)
    departures = stream.departures.without_payload().filter(position=entry.position)
    return {
        "now": now,
        "stream": stream,
        "entry": entry,
        "error": payload.escape_unseen(failed.error[:4000]),
        "error_type": payload.escape_unseen(failed.error_type[:300]),
        "group_name": payload.escape_unseen(failed.group[:300]),
        "original_id": payload.escape_unseen(failed.original_id[:100]),
        "fingerprint": hiding.fingerprint(entry).digest,
        "added_at": ids.added_at(entry.position),
        "shown": payload.build_payload(entry, revealed=revealed),
        "revealed": revealed,
        "delivery": execution.delivery_guarantee(stream),
        "under_way": departures.filter(state=Departure.State.INTENDED).first(),
        "events": _events_context(
            history.list_events(stream, entry, redaction=None if revealed else hiding)
        ),
        **authority_context(request, stream),
        "size_bytes": entry.size_bytes,
    }


def read_letter(stream: LetterStream, entry_id: str, limits: ReadLimits) -> LetterEntry | None:
    """Return the letter with this id, or None if it is not in the stream; 404 for an invalid id.

    Raises :class:`ServerUnavailable` and :class:`ServerRefused`.
    """
    try:
        ids.to_position(entry_id)
    except NotFound as error:
        raise Http404 from error
    return reader.read_entry(stream.server, stream.name, entry_id, limits=limits)


def truncate_for_page(entry: LetterEntry) -> LetterEntry:
    """Return the entry truncated to `PAGE_LIMITS`, as a read with these limits returns it."""
    pairs = entry.pairs[: payload.PAGE_LIMITS.fields]
    most = payload.PAGE_LIMITS.value_bytes
    return LetterEntry(
        entry.id,
        tuple((name, value[:most]) for name, value in pairs),
        tuple(len(value) for _, value in pairs),
        len(entry.pairs),
    )


def _events_context(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a letter's history for the template, newest first, with edits of fields as text."""
    return [
        {
            "event": one,
            "changes": list_changes(one.get("changes", ())),
        }
        for one in reversed(events)
    ]


def list_changes(changes: Iterable[FieldChange]) -> list[dict[str, Any]]:
    """Return changes of fields as text, for the template `core/_diff.html`."""
    return [
        {
            "field": payload.escape_unseen(change.path),
            "before": _change_text(change.before),
            "after": _change_text(change.after),
            "changed": True,
        }
        for change in changes
    ]


def _change_text(shown: presentation.DisplayValue | None) -> str:
    if shown is None:
        return ""
    text = shown if isinstance(shown, str) else shown.get("text", f"base64:{shown.get('base64')}")
    return payload.escape_unseen(text if text.strip() else json.dumps(text))[:2000]
