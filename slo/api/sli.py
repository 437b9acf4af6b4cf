"""The API for pushing counters, from applications, sidecars and scripts."""

from datetime import datetime
from typing import IO, Any

import orjson
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from controlplane.core import authority
from controlplane.core.actors import Actor
from controlplane.core.authority import Teams
from controlplane.core.errors import DomainError, Forbidden
from controlplane.core.http.fields import EmptyBody, Text
from controlplane.core.http.json_format import StrictJSONParser
from controlplane.core.http.views import ApiView, Done, mutation
from controlplane.core.protocol import MAX_SLI_BODY_BYTES, too_large
from slo.ingest import points, push_body
from slo.ingest.push_body import MAX_ENTRIES, Deltas, Point

WRITE, REPORT = "slo:write", "report:write"
_BULK_FIELDS = ("points", "deltas", "batch_id")


class _Counts(serializers.Serializer[Any]):
    slo = Text(
        required=False,
        help_text="Name of the SLO; without it, `metric` and `service` are required.",
    )
    good = serializers.FloatField(required=False, min_value=0)
    total = serializers.FloatField(required=False, min_value=0)
    source = Text(  # type: ignore[assignment]
        required=False, max_length=200, help_text="Name of the counting process, such as a host."
    )
    at = serializers.DateTimeField(
        required=False, help_text="Defaults to now; at most 24 hours ago or a minute ahead."
    )


class PointShape(_Counts):
    boot = Text(
        required=False,
        max_length=200,
        help_text="Identifies a run of the process; counters of a new boot restart at zero.",
    )
    started_at = serializers.DateTimeField(
        required=False,
        help_text="When the counters were zero. Without it, a source's first point is only a "
        "baseline.",
    )
    metric = Text(required=False, max_length=120)
    service = Text(required=False, max_length=60)
    buckets = serializers.DictField(
        child=serializers.FloatField(min_value=0),
        required=False,
        help_text="Instead of good and total, events by duration in milliseconds at most: "
        '`{"1000": 90, "3000": 99, "+Inf": 100}`. One edge must be the SLO\'s threshold.',
    )


class DeltaShape(_Counts):
    slo = Text()
    good = serializers.FloatField(min_value=0)
    total = serializers.FloatField(min_value=0)


class SliPointsBody(EmptyBody):
    """Cumulative `points`, or `deltas` with a `batch_id`; sending either twice counts once."""

    points = PointShape(many=True, required=False, help_text=f"At most {MAX_ENTRIES:,}.")
    batch_id = Text(
        required=False, max_length=200, help_text="Unique per sender; a batch is counted once."
    )
    deltas = DeltaShape(many=True, required=False, help_text=f"At most {MAX_ENTRIES:,}.")

    def read(self) -> dict[str, Any]:
        """Return the validated body. Points and deltas are parsed by `push_body`, for speed."""
        other_fields = {
            name: value for name, value in self.initial_data.items() if name not in _BULK_FIELDS
        }
        return {
            **EmptyBody(data=other_fields).read(),
            "entries": push_body.parse_body(self.initial_data),
        }


class RefusedPointShape(serializers.Serializer[Any]):
    index = serializers.IntegerField(min_value=0)
    error = serializers.CharField()


class SliPointsResultShape(serializers.Serializer[Any]):
    """Numbers of accepted and duplicate points or deltas, and the refused ones with reasons."""

    accepted = serializers.IntegerField(min_value=0)
    duplicates = serializers.IntegerField(min_value=0)
    refused = RefusedPointShape(many=True)
    duplicate = serializers.BooleanField(
        required=False, help_text="For deltas: whether this batch was already counted."
    )


class SliParser(StrictJSONParser):
    """A JSON parser without the usual check of every string: `push_body` checks each field."""

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Any = None
    ) -> dict[str, Any]:
        self.require_utf8(media_type or "")
        body = stream.read(MAX_SLI_BODY_BYTES + 1)
        if len(body) > MAX_SLI_BODY_BYTES:
            raise too_large(MAX_SLI_BODY_BYTES)
        try:
            value = orjson.loads(body or b"{}")
        except orjson.JSONDecodeError as error:
            raise DomainError(f"The body is not valid JSON in UTF-8: {error}.") from error
        if not isinstance(value, dict):
            raise DomainError('The body must be a JSON object: {"points": […]}.')
        return value


class MayPush(BasePermission):
    """Permission to push counters: the scope `slo:write` or `report:write`."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        actor = getattr(request, "actor", None)
        if actor is None:
            return False
        if not actor.may(REPORT) and request.method in view.allowed_methods:
            actor.require(WRITE)
        return True


class SliView(ApiView):
    permission_classes = [MayPush]
    parser_classes = [SliParser]
    write_scope = WRITE

    @extend_schema(request=SliPointsBody, responses=SliPointsResultShape)
    @mutation(SliPointsBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime) -> Done:
        """Push counters; requires the scope `slo:write` or `report:write`.

        If any field is malformed, the whole request fails. Entries that are too old, in the
        future, or of an unknown SLO are refused one by one, with reasons. The request fails if
        all entries are refused.
        """
        entries = body["entries"]
        teams = authority.read_teams() if actor.type == "token" else None
        if teams is not None and (teams or actor.services or actor.is_limited):
            _check_services(actor, entries, teams)
        if isinstance(entries, Deltas):
            return Done(points.accept_batch(**entries._asdict(), actor=actor, now=now))
        return Done(points.accept_points(entries, now=now))


def _check_services(actor: Actor, entries: Deltas | list[Point], teams: Teams) -> None:
    """Raise :class:`Forbidden` if a token pushes entries of a service that it may not act for.

    An entry belongs to the service of its SLO or histogram, and to the service in its source if
    that is `service/instance`. A token limited to services can't push to an SLO without a service,
    and one that doesn't name the service can't push for what the teams of others own, nor for what
    the token's limits exclude.
    """
    points_or_deltas = entries.deltas if isinstance(entries, Deltas) else entries
    measured = {one.service for one in points_or_deltas if isinstance(one, Point) and one.service}
    sources = {one.source.partition("/")[0] for one in points_or_deltas if "/" in one.source}
    for service in sorted(measured | sources):
        actor.require_service(service)
        resource = f"service:{service}"
        _check_owner(actor, teams, resource, service)
        if service in measured:
            _check_limits(actor, teams, service, resource)
    for slo, service in points.find_services({one.slo for one in points_or_deltas}).items():
        actor.require_service(service, f"the SLO {slo} of {service or 'no service'}")
        resources = [f"slo:{slo}", *([f"service:{service}"] if service else [])]
        owned = next((one for one in resources if teams.owner_of(one)), resources[0])
        _check_owner(actor, teams, owned, service)
        _check_limits(actor, teams, service, *resources)


def _check_owner(actor: Actor, teams: Teams, resource: str, service: str) -> None:
    """Raise :class:`Forbidden` if another team owns a resource of a service."""
    if service in actor.services:
        return
    if (owner := teams.find_foreign_owner(actor, resource)) is not None:
        raise Forbidden(
            f"{owner.name} owns {resource}. Use a token of this team, or one that names the"
            " service among its services.",
            owner=owner.slug,
        )


def _check_limits(actor: Actor, teams: Teams, service: str, *resources: str) -> None:
    """Raise :class:`Forbidden` if the token's limits exclude all of these resources."""
    limits = [teams.find_limit(actor, one) for one in resources]
    if service not in actor.services and all(limits):
        raise Forbidden(limits[0], resource=resources[0])
