"""API of streams: the inbox, a stream's letters and groups, and one letter."""

import time
from datetime import datetime
from typing import ClassVar

from django.utils.encoding import escape_uri_path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from breakers.dead_letters import history, letter_list, resources
from breakers.dead_letters.letters import ids
from breakers.dead_letters.letters.filters import LetterFilter
from breakers.dead_letters.letters.presentation import DETAIL_LIMITS, letter_resource
from breakers.dead_letters.letters.redaction import configured_redaction
from breakers.dead_letters.models import LetterStream
from breakers.dead_letters.monitoring import groups, indexer, streams
from breakers.dead_letters.redis_servers import reader, servers
from breakers.dead_letters.removals import missing_letters
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, NotFound
from controlplane.core.http.views import ApiView

from .bodies import ChoiceFilters, InboxFilters, MessageFilters, ServerFilter
from .shapes import ONE_MESSAGE, ONE_STREAM, GroupsShape, MessageShape, PageShape, StreamShape

READ, WRITE = "dlq:read", "dlq:write"
INDEXING_SECONDS = 1.4
"""Time for indexing before groups are counted; sampling indexes continuously."""
DETAIL_READ_LIMITS = reader.ReadLimits(
    value_bytes=DETAIL_LIMITS.value_bytes,
    fields=DETAIL_LIMITS.fields,
    entries=1,
    total_bytes=2 * DETAIL_LIMITS.total_bytes,
)


class DeadLetterView(ApiView):
    """Base of views of one stream."""

    read_scope = READ
    write_scope = WRITE
    path_parameters: ClassVar[tuple[OpenApiParameter, ...]] = ONE_STREAM


class Inbox(ApiView):
    read_scope = READ
    filters = InboxFilters
    http_method_names = ["get", "head"]

    @extend_schema(operation_id="dlq_inbox", responses=StreamShape(many=True))
    def get(self, request: Request) -> Response:
        """List every stream of dead letters and the outbox, as sampled within the last seconds.

        Those with an alarm come first, then the deepest.
        """
        given = self.filters.parse(request.query_params)
        now = db_now()
        if "server" in given:
            servers.get_server(given["server"])
        rows = [
            row for row in streams.list_shown(now) if given.get("server", row.server) == row.server
        ]
        return Response(resources.stream_resources(rows, streams.growth_per_minute(rows, now)))


class MessageList(DeadLetterView):
    filters = MessageFilters
    http_method_names = ["get", "head"]

    @extend_schema(operation_id="dlq_messages", responses=PageShape)
    def get(self, request: Request, name: str) -> Response:
        """List a stream's letters, newest first.

        If the filter needs payloads, a page takes a few seconds at most, and may have few results
        or none and still say where to go on.
        """
        given = self.filters.parse(request.query_params)
        now = db_now()
        stream = find_letter_stream(given["server"], name, now)
        chosen = LetterFilter.from_mapping(ChoiceFilters.chosen(given))
        until = time.monotonic() + letter_list.PAGE_SECONDS * 1.5
        known = not chosen.uses_index or indexer.catch_up(
            stream, now, seconds=letter_list.PAGE_SECONDS / 2
        )
        page = letter_list.read_page(
            stream,
            chosen,
            cursor=given.get("cursor", ""),
            limit=min(given["limit"], letter_list.MAX_PAGE),
        )
        redaction = configured_redaction()
        page, results = letter_list.render_until(
            page, lambda one: letter_resource(one, redaction=redaction), until=until
        )
        return Response(
            {
                "next": _next_link(request, page.next),
                "previous": None,
                "results": results,
                "looked_at": page.looked_at,
                "looked_to": page.looked_to or None,
                "complete": page.complete and known,
            }
        )


class MessageDetail(DeadLetterView):
    path_parameters = ONE_MESSAGE
    filters = ServerFilter
    http_method_names = ["get", "head"]

    @extend_schema(operation_id="dlq_message", responses=MessageShape)
    def get(self, request: Request, name: str, entry_id: str) -> Response:
        """Return one letter and its history."""
        stream = find_letter_stream(
            self.filters.parse(request.query_params)["server"], name, db_now()
        )
        entry = reader.read_entry(
            stream.server, stream.name, normalize_id(entry_id), limits=DETAIL_READ_LIMITS
        )
        if entry is None:
            raise _not_found_error(stream, entry_id)
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
    filters = ServerFilter
    http_method_names = ["get", "head"]

    @extend_schema(operation_id="dlq_groups", responses=GroupsShape)
    def get(self, request: Request, name: str) -> Response:
        """List a stream's letters by error, the largest groups first."""
        now = db_now()
        stream = find_letter_stream(self.filters.parse(request.query_params)["server"], name, now)
        complete = indexer.catch_up(stream, now, seconds=INDEXING_SECONDS)
        redaction = configured_redaction()
        found = [resources.group_resource(one, redaction) for one in groups.list_groups(stream)]
        return Response({"results": found, "complete": complete})


def find_letter_stream(server: str, name: str, now: datetime) -> LetterStream:
    """Return the stream.

    Raises :class:`NotFound`, also for the outbox, whose messages are no letters.
    """
    stream = streams.find_stream(server, name, now)
    if stream.source == LetterStream.Source.OUTBOX:
        raise NotFound(
            "The outbox is no stream: its failed messages are under /api/v1/dlq/outbox/."
        )
    return stream


def normalize_id(entry_id: str) -> str:
    """The id as Redis writes it. Raises :class:`NotFound`."""
    return ids.to_entry_id(ids.to_position(entry_id))


def _not_found_error(stream: LetterStream, entry_id: str) -> NotFound:
    """Return a 404 that says where the letter went; for readers a removed letter does not exist."""
    error = missing_letters.missing_letter_error(stream, entry_id)
    known = error.extra if isinstance(error, Conflict) else {}
    return NotFound(error.detail, **known)


def _next_link(request: Request, cursor: str) -> str | None:
    if not cursor:
        return None
    query = request.query_params.copy()
    query["cursor"] = cursor
    return f"{request.build_absolute_uri(escape_uri_path(request.path))}?{query.urlencode()}"
