"""API endpoints of streams: the inbox, a stream's letters and groups, and one letter."""

import time
from dataclasses import replace
from datetime import datetime
from typing import Any, ClassVar

from django.utils.encoding import escape_uri_path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from breakers.dead_letters import history, letter_list, resources
from breakers.dead_letters.letters import ids
from breakers.dead_letters.letters.presentation import DETAIL_LIMITS, letter_resource
from breakers.dead_letters.letters.redaction import configured_redaction
from breakers.dead_letters.models import LetterStream
from breakers.dead_letters.monitoring import groups, indexer, streams
from breakers.dead_letters.redis_servers import reader, servers
from breakers.dead_letters.removals import missing_letters
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, NotFound
from controlplane.core.http.permissions import actor_of
from controlplane.core.http.views import ApiView
from controlplane.core.team_filter import parse_team_filter

from .bodies import InboxFilters, MessageFilters, ServerFilter
from .shapes import (
    ANY_SERVER,
    ONE_MESSAGE,
    ONE_STREAM,
    DeadLetterDetailShape,
    DeadLetterPageShape,
    DeadLetterStreamShape,
    LetterGroupShape,
    LetterGroupsShape,
)

READ, WRITE = "dlq:read", "dlq:write"
INDEXING_SECONDS = 1.4
"""Time limit for indexing new letters before groups are counted."""
DETAIL_READ_LIMITS = replace(DETAIL_LIMITS, entries=1, total_bytes=2 * DETAIL_LIMITS.total_bytes)


class DeadLetterView(ApiView):
    """Base class of the endpoints of one stream."""

    read_scope = READ
    write_scope = WRITE
    path_parameters: ClassVar[tuple[OpenApiParameter, ...]] = ONE_STREAM
    filters: ClassVar[type[ServerFilter]] = ServerFilter

    def find_stream(self, name: str, now: datetime) -> LetterStream:
        """Return the stream `name` on the server that the query parameter `server` names."""
        server = ServerFilter.parse(self.request.query_params)["server"]
        return find_letter_stream(server, name, now)


class DeadLetterIdView(ApiView):
    """Base class of the endpoints of bulk jobs, archive and outbox, whose paths name no stream."""

    read_scope = READ
    write_scope = WRITE
    path_parameters = (ANY_SERVER,)


class Inbox(ApiView):
    read_scope = READ
    filters = InboxFilters

    @extend_schema(operation_id="dlq_inbox", responses=DeadLetterStreamShape(many=True))
    def get(self, request: Request) -> Response:
        """List every stream of dead letters and the outbox, as sampled within the last seconds.

        Streams with an alarm come first, then the deepest.
        """
        filters, now = self.filters.parse(request.query_params), db_now()
        server = filters.get("server")
        team = parse_team_filter(actor_of(request), filters.get("team", ""))
        if server is not None:
            servers.get_server(server)
        rows = [
            row
            for row in streams.list_shown(now)
            if server in (None, row.server) and team.includes(row.resource)
        ]
        return Response(resources.stream_resources(rows, now))


class MessageList(DeadLetterView):
    filters = MessageFilters

    @extend_schema(operation_id="dlq_messages", responses=DeadLetterPageShape)
    def get(self, request: Request, name: str) -> Response:
        """List a stream's letters, newest first.

        A filter on payloads is searched for a few seconds at most: a page may have few results, or
        none, and still have a next page.
        """
        given = self.filters.parse(request.query_params)
        now = db_now()
        stream = find_letter_stream(given["server"], name, now)
        chosen = self.filters.build_filter(given)
        until = time.monotonic() + letter_list.PAGE_SECONDS * 1.5
        is_indexed = not chosen.uses_index or indexer.catch_up(
            stream, now, seconds=letter_list.PAGE_SECONDS / 2
        )
        limit = min(given["limit"], letter_list.MAX_PAGE)
        page = letter_list.read_page(stream, chosen, cursor=given.get("cursor", ""), limit=limit)
        redaction = configured_redaction()
        results: list[dict[str, Any]] = []
        for entry in page.entries:
            if results and time.monotonic() > until:  # The page ends with the last rendered letter.
                page = replace(page, next=results[-1]["id"], looked_to=results[-1]["id"])
                break
            results.append(letter_resource(entry, redaction=redaction))
        return Response(
            {
                "next": _next_link(request, page.next),
                "previous": None,
                "results": results,
                "looked_at": page.looked_at,
                "looked_to": page.looked_to or None,
                "complete": page.complete and is_indexed,
            }
        )


class MessageDetail(DeadLetterView):
    path_parameters = ONE_MESSAGE

    @extend_schema(operation_id="dlq_message", responses=DeadLetterDetailShape)
    def get(self, request: Request, name: str, entry_id: str) -> Response:
        """Return one letter and its history."""
        stream = self.find_stream(name, db_now())
        entry = reader.read_entry(
            stream.server, stream.name, normalize_id(entry_id), limits=DETAIL_READ_LIMITS
        )
        if entry is None:
            error = missing_letters.missing_letter_error(stream, entry_id)
            # A read returns 404 with the letter's removal, where a change returns 409.
            raise NotFound(error.detail, **(error.extra if isinstance(error, Conflict) else {}))
        redaction = configured_redaction()
        events = history.list_events(stream, entry, redaction=redaction)
        return Response(
            {
                "server": stream.server,
                "stream": stream.name,
                **letter_resource(entry, redaction=redaction, measure=DETAIL_LIMITS),
                "history": [history.event_resource(one) for one in events],
            }
        )


class GroupList(DeadLetterView):
    @extend_schema(operation_id="dlq_groups", responses=LetterGroupsShape)
    def get(self, request: Request, name: str) -> Response:
        """List a stream's letters grouped by error, the largest groups first."""
        now = db_now()
        stream = self.find_stream(name, now)
        complete = indexer.catch_up(stream, now, seconds=INDEXING_SECONDS)
        results = [LetterGroupShape.render(one) for one in groups.list_groups(stream)]
        return Response({"results": results, "complete": complete})


def find_letter_stream(server: str, name: str, now: datetime) -> LetterStream:
    """Return the Redis stream of this server and name.

    Raises :class:`NotFound`, also for the outbox, which is no Redis stream.
    """
    stream = streams.find_stream(server, name, now)
    if stream.source == LetterStream.Source.OUTBOX:
        raise NotFound(
            "The outbox is not a stream. Its failed messages are at /api/v1/dlq/outbox/."
        )
    return stream


def normalize_id(entry_id: str) -> str:
    """Return the entry id in the notation of Redis. Raises :class:`NotFound` for an invalid id."""
    return ids.to_entry_id(ids.to_position(entry_id))


def _next_link(request: Request, cursor: str) -> str | None:
    if not cursor:
        return None
    query = request.query_params.copy()
    query["cursor"] = cursor
    return f"{request.build_absolute_uri(escape_uri_path(request.path))}?{query.urlencode()}"
