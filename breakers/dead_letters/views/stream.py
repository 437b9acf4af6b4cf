"""Page of a stream, with tabs for groups, letters, the archive and gaps."""

from datetime import datetime
from typing import Any

from django.db.models import Q
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.views.decorators.http import require_GET

from breakers.dead_letters.models import Departure, LetterStream, Replay
from breakers.dead_letters.monitoring import groups, indexer, streams
from breakers.dead_letters.redis_servers.servers import ServerRefused, ServerUnavailable
from breakers.dead_letters.removals import archive, settlement
from breakers.views import live
from controlplane.core import authority
from controlplane.core.actions import Action
from controlplane.core.clock import db_now
from controlplane.core.errors import NotFound
from controlplane.core.http.permissions import actor_of
from controlplane.core.jobs.models import Job
from controlplane.core.page_responses import PersonRequest, signed_in

from . import messages
from .inbox import RECENT, server_context

GROUPS_SHOWN = 50
PAGE_SIZE = 50
INDEXING_SECONDS = 0.05
"""Time limit for indexing during a page request; the sampler indexes the rest."""


@signed_in
@require_GET
def stream_page(request: PersonRequest, server: str, name: str) -> HttpResponse:
    now = db_now()
    stream = find_stream_or_404(server, name, now)
    if stream.source == LetterStream.Source.OUTBOX:
        return HttpResponseRedirect(stream.page_url)
    requested = request.GET.get("tab", "")
    tab = requested if requested in _TABS else "groups"
    growth = streams.growth_per_minute([stream], now)[stream.pk]
    is_recent = Q(job__state__in=Job.LIVE) | Q(job__finished_at__gte=now - RECENT)
    replays = Replay.objects.filter(is_recent, stream=stream)
    context = {
        "now": now,
        "stream": stream,
        "tab": tab,
        "growth": growth if stream.sampled_at else None,
        **authority_context(request, stream),
        "gaps_total": stream.vanished_total,
        "replays": list(replays.select_related("job", "stream").order_by("-job_id")[:5]),
        **server_context(),
        **_TABS[tab](request, stream, now),
    }
    return live.render_page(request, "dead_letters/stream", context)


def find_stream_or_404(server: str, name: str, now: datetime) -> LetterStream:
    """Return the stream; raise 404 if it is unknown and can't be found on its server."""
    try:
        return streams.find_stream(server, name, now)
    except (NotFound, ServerUnavailable, ServerRefused) as error:
        raise Http404 from error


def authority_context(request: PersonRequest, stream: LetterStream) -> dict[str, Any]:
    """Return the stream's owner, and the decisions on what the person may do with its letters."""
    actor = actor_of(request)
    may_replay = authority.decide(actor, Action.REPLAY, stream.resource)
    may_discard = authority.decide(actor, Action.PURGE, stream.resource)
    is_allowed = may_replay.is_allowed or may_discard.is_allowed
    return {
        "team": may_replay.owner,
        "may_replay": may_replay,
        "may_discard": may_discard,
        "may_write": actor.may(settlement.SCOPE) and is_allowed,
    }


def _groups_context(request: PersonRequest, stream: LetterStream, now: datetime) -> dict[str, Any]:
    complete, trouble = True, ""
    try:
        complete = indexer.catch_up(stream, now, seconds=INDEXING_SECONDS)
    except (ServerUnavailable, ServerRefused) as error:
        trouble = error.detail
    all_groups = groups.list_groups(stream)
    return {
        "groups": all_groups[:GROUPS_SHOWN],
        "groups_total": len(all_groups),
        "largest": max((one.count for one in all_groups), default=0),
        "complete": complete,
        "trouble": trouble,
    }


def _archive_context(request: PersonRequest, stream: LetterStream, now: datetime) -> dict[str, Any]:
    query = Departure.objects.without_payload().filter(stream=stream).order_by("-id")
    query = query.annotate(is_edited=Q(edited__isnull=False))
    before = request.GET.get("before", "")
    if before.isascii() and before.isdigit() and len(before) < 19:
        query = query.filter(pk__lt=int(before))
    else:
        before = ""
    action = request.GET.get("action", "")
    action = action if action in Departure.Action.values else ""
    if action:
        query = query.filter(action=action)
    rows = list(query[: PAGE_SIZE + 1])
    return {
        "archived": [(one, archive.is_restorable(one, now)) for one in rows[:PAGE_SIZE]],
        "older": rows[PAGE_SIZE - 1].pk if len(rows) > PAGE_SIZE else None,
        "newest": not before,
        "wanted_action": action,
        "actions": Departure.Action.values,
    }


def _gaps_context(request: PersonRequest, stream: LetterStream, now: datetime) -> dict[str, Any]:
    rows = list(stream.gaps.order_by("-noticed_at", "-pk")[: PAGE_SIZE + 1])
    return {"gaps": rows[:PAGE_SIZE], "more_gaps": len(rows) > PAGE_SIZE}


_TABS = {
    "groups": _groups_context,
    "messages": messages.messages_context,
    "archive": _archive_context,
    "gaps": _gaps_context,
}
