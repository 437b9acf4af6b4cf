"""API endpoints that list, return and restore removed letters."""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from breakers.dead_letters import history
from breakers.dead_letters.letters import ids, presentation
from breakers.dead_letters.letters.entries import LetterEntry
from breakers.dead_letters.letters.redaction import configured_redaction
from breakers.dead_letters.models import Departure
from breakers.dead_letters.removals import archive, restoration
from breakers.dead_letters.sources import DEFAULT_SERVER
from controlplane.core.actors import Actor
from controlplane.core.clock import db_now
from controlplane.core.errors import InvalidInput, NotFound
from controlplane.core.http.views import Done, ListView, mutation

from .bodies import ArchiveFilters, ReasonBody
from .messages import DeadLetterIdView
from .shapes import ArchivedLetterDetailShape, ArchivedLetterShape, RestoredLetterShape

_COLUMNS = {
    "server": "stream__server",
    "stream": "stream__name",
    "before": "intended_at__lt",
    "after": "intended_at__gte",
    "message_id": "position",
}


class ArchiveList(DeadLetterIdView, ListView[Departure]):
    """List letters that were removed, or are being removed, through Switchgear, newest first."""

    queryset = Departure.objects.without_payload().select_related("stream")
    serializer_class = ArchivedLetterShape
    filters = ArchiveFilters
    ordering = "-id"

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "now": db_now()}

    def apply_filters(
        self, rows: QuerySet[Departure], filters: dict[str, Any]
    ) -> QuerySet[Departure]:
        values = dict(filters)
        if "stream" in values:
            values.setdefault("server", DEFAULT_SERVER)
        if "message_id" in values:
            try:
                values["message_id"] = ids.to_position(values["message_id"])
            except NotFound as error:
                raise InvalidInput({"message_id": [error.detail]}) from error
        return rows.filter(**{_COLUMNS.get(name, name): value for name, value in values.items()})


class ArchivedView(DeadLetterIdView):
    @extend_schema(operation_id="dlq_archived", responses=ArchivedLetterDetailShape)
    def get(self, _request: Request, departure_id: int) -> Response:
        """Return an archived letter with its redacted fields and its history."""
        row, redaction = archive.find_departure(departure_id), configured_redaction()
        limits = presentation.DETAIL_LIMITS
        letter = presentation.letter_resource(
            row.entry, redaction=redaction, fingerprint=row.fingerprint, measure=limits
        )
        edited = None
        if (pairs := row.edited_pairs) is not None:
            message = presentation.truncate_entry(LetterEntry(row.entry_id, pairs), limits)
            message = redaction.redact_entry(message)
            edited, _ = presentation.display_fields(
                message.pairs, sizes=message.sizes, measure=limits
            )
        names = ("fields", "truncated", "attempts", "failed_at", "group")
        events = history.list_events(row.stream, row.entry, redaction=redaction)
        return Response(
            {
                **ArchivedLetterShape(row, context={"now": db_now()}).data,
                **{name: letter[name] for name in names},
                "edited_fields": edited,
                "history": [history.event_resource(one) for one in events],
            }
        )


class RestoreView(DeadLetterIdView):
    def prepare(
        self, *, body: dict[str, Any], actor: Actor, now: datetime, departure_id: int
    ) -> restoration.PreparedRestore:
        return restoration.prepare_restore(
            departure_id=departure_id,
            reason=body["reason"],
            actor=actor,
            now=now,
            dry_run=body.get("dry_run", False),
        )

    @extend_schema(operation_id="dlq_restore", request=ReasonBody, responses=RestoredLetterShape)
    @mutation(ReasonBody, first=prepare)
    def post(
        self,
        *,
        body: dict[str, Any],
        actor: Actor,
        now: datetime,
        departure_id: int,
        prepared: restoration.PreparedRestore,
    ) -> Done:
        """Restore the letter to its stream under a new id."""
        result = prepared.record(now)
        row = archive.find_departure(departure_id)
        return Done({**ArchivedLetterShape(row, context={"now": now}).data, **result})
