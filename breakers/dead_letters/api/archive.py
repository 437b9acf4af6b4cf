"""API of the archive: removed letters, and restoring them."""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from breakers.dead_letters import resources
from breakers.dead_letters.letters import ids
from breakers.dead_letters.letters.redaction import configured_redaction
from breakers.dead_letters.models import Departure
from breakers.dead_letters.removals import archive, restoration
from breakers.dead_letters.sources import DEFAULT_SERVER
from controlplane.core.actors import Actor
from controlplane.core.clock import db_now
from controlplane.core.errors import InvalidInput, NotFound
from controlplane.core.http.views import ApiView, Done, ListView, mutation

from .bodies import ArchiveFilters, ReasonBody
from .messages import READ, WRITE
from .shapes import ANY_SERVER, DepartureShape, RestoredShape, WholeDepartureShape

_COLUMNS = {
    "server": "stream__server",
    "stream": "stream__name",
    "before": "intended_at__lt",
    "after": "intended_at__gte",
    "message_id": "position",
}


class DepartureListShape(serializers.ListSerializer[Any]):
    """Serialize many rows with one redaction."""

    def to_representation(self, data: Any) -> list[dict[str, Any]]:
        redaction, now = configured_redaction(), db_now()
        return [resources.departure_resource(row, redaction, now) for row in data]


class ListedDepartureShape(DepartureShape):
    class Meta:
        list_serializer_class = DepartureListShape


class ArchiveList(ListView[Departure]):
    """List the letters that were removed through Switchgear or are being removed, newest first."""

    path_parameters = (ANY_SERVER,)
    queryset = Departure.objects.without_payload().select_related("stream")
    serializer_class = ListedDepartureShape
    filters = ArchiveFilters
    ordering = "-id"
    read_scope = READ
    http_method_names = ["get", "head"]

    def apply_filters(
        self, rows: QuerySet[Departure], filters: dict[str, Any]
    ) -> QuerySet[Departure]:
        wanted = dict(filters)
        if "stream" in wanted:
            wanted.setdefault("server", DEFAULT_SERVER)
        if "message_id" in wanted:
            try:
                wanted["message_id"] = ids.to_position(wanted["message_id"])
            except NotFound as error:
                raise InvalidInput({"message_id": [error.detail]}) from error
        return rows.filter(**{_COLUMNS.get(name, name): value for name, value in wanted.items()})


class ArchivedView(ApiView):
    path_parameters = (ANY_SERVER,)
    read_scope = READ
    http_method_names = ["get", "head"]

    @extend_schema(operation_id="dlq_archived", responses=WholeDepartureShape)
    def get(self, _request: Request, departure_id: int) -> Response:
        """Return an archived letter with its fields, redacted, and its history."""
        row = archive.find_departure(departure_id)
        return Response(resources.full_departure_resource(row, configured_redaction(), db_now()))


class RestoreView(ApiView):
    path_parameters = (ANY_SERVER,)
    write_scope = WRITE
    http_method_names = ["post"]

    def first(
        self, *, body: dict[str, Any], actor: Actor, now: datetime, departure_id: int
    ) -> restoration.PreparedRestore:
        return restoration.prepare_restore(
            departure_id=departure_id,
            reason=body["reason"],
            actor=actor,
            now=now,
            dry_run=body.get("dry_run", False),
        )

    @extend_schema(operation_id="dlq_restore", request=ReasonBody, responses=RestoredShape)
    @mutation(ReasonBody, first=first)
    def post(
        self,
        *,
        body: dict[str, Any],
        actor: Actor,
        now: datetime,
        departure_id: int,
        prepared: restoration.PreparedRestore,
    ) -> Done:
        """Restore the letter to its stream, as it was, under a new id."""
        said = prepared.record(now)
        row = archive.find_departure(departure_id)
        return Done({**resources.departure_resource(row, configured_redaction(), now), **said})
