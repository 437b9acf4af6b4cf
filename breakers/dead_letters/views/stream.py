"""The page of a stream: groups, letters, the archive and gaps."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.views.decorators.http import require_GET

from breakers.dead_letters.models import Departure, Gap, LetterStream, Replay
from breakers.dead_letters.monitoring import groups, indexer, streams
from breakers.dead_letters.redis_servers.servers import ServerRefused, ServerUnavailable
from breakers.dead_letters.removals import archive
from breakers.views import live
from controlplane.core.clock import db_now
from controlplane.core.errors import NotFound
from controlplane.core.http.permissions import actor_of
from controlplane.core.jobs.models import Job
from controlplane.core.page_responses import PersonRequest, signed_in

from . import links, messages
from .inbox import server_context

TABS = ("groups", "messages", "archive", "gaps")
GROUPS_SHOWN = 50
PAGE_SIZE = 50
INDEXING_SECONDS = 0.05
"""Time for indexing in a request; the sampler does the rest."""


@dataclass(frozen=True)
class ArchivedRow:
    """A removed letter; `may_restore` if it can still be restored."""

    departure: Departure
    is_edited: bool
    may_restore: bool


@signed_in
@require_GET
def stream_page(request: PersonRequest, server: str, name: str) -> HttpResponse:
    now = db_now()
    stream = find_stream_or_404(server, name, now)
    if stream.source == LetterStream.Source.OUTBOX:
        return HttpResponseRedirect(links.stream_url(stream))
    asked = request.GET.get("tab", "")
    tab = asked if asked in TABS else TABS[0]
    context = {
        "now": now,
        "stream": stream,
        "tab": tab,
        "growth": streams.growth_per_minute([stream], now).get(stream.pk)
        if stream.sampled_at
        else None,
        "may_write": actor_of(request).may("dlq:write"),
        "gaps_total": stream.vanished_total,
        **_replays(stream),
        **server_context(),
        **_TABS[tab](request, stream, now),
    }
    return live.render_page(request, "dead_letters/stream", context)


def find_stream_or_404(server: str, name: str, now: datetime) -> LetterStream:
    """Return the stream. An unavailable server hides only streams that were never seen."""
    try:
        return streams.find_stream(server, name, now)
    except (NotFound, ServerUnavailable, ServerRefused) as error:
        raise Http404 from error


def _groups(request: PersonRequest, stream: LetterStream, now: datetime) -> dict[str, Any]:
    complete, trouble = True, ""
    try:
        complete = indexer.catch_up(stream, now, seconds=INDEXING_SECONDS)
    except (ServerUnavailable, ServerRefused) as error:
        trouble = error.detail
    found = groups.list_groups(stream)
    return {
        "groups": found[:GROUPS_SHOWN],
        "groups_total": len(found),
        "largest": max((one.count for one in found), default=0),
        "complete": complete,
        "trouble": trouble,
    }


def _messages(request: PersonRequest, stream: LetterStream, now: datetime) -> dict[str, Any]:
    return messages.messages_context(request, stream, now)


def _archive(request: PersonRequest, stream: LetterStream, now: datetime) -> dict[str, Any]:
    rows = Departure.objects.without_payload().filter(stream=stream).order_by("-id")
    rows = rows.annotate(is_edited=Q(edited__isnull=False))
    before = request.GET.get("before", "")
    if before.isascii() and before.isdigit() and len(before) < 19:
        rows = rows.filter(pk__lt=int(before))
    else:
        before = ""
    wanted = request.GET.get("action", "")
    wanted = wanted if wanted in Departure.Action.values else ""
    if wanted:
        rows = rows.filter(action=wanted)
    found = list(rows[: PAGE_SIZE + 1])
    return {
        "archived": [
            ArchivedRow(one, getattr(one, "is_edited", False), may_restore(one, now))
            for one in found[:PAGE_SIZE]
        ],
        "older": found[PAGE_SIZE - 1].pk if len(found) > PAGE_SIZE else None,
        "newest": not before,
        "wanted_action": wanted,
        "actions": Departure.Action.values,
    }


def may_restore(departure: Departure, now: datetime) -> bool:
    """Return True if the letter can be restored."""
    until = archive.restorable_until(departure)
    return until is not None and until > now


def _gaps(request: PersonRequest, stream: LetterStream, now: datetime) -> dict[str, Any]:
    rows = Gap.objects.filter(stream=stream).order_by("-noticed_at", "-pk")
    found = list(rows[: PAGE_SIZE + 1])
    return {"gaps": found[:PAGE_SIZE], "more_gaps": len(found) > PAGE_SIZE}


def _replays(stream: LetterStream) -> dict[str, Any]:
    rows = Replay.objects.filter(stream=stream, job__state__in=Job.LIVE)
    return {"replays": list(rows.select_related("job", "stream").order_by("-job_id")[:5])}


_TABS = {"groups": _groups, "messages": _messages, "archive": _archive, "gaps": _gaps}
