"""API of external gates: report a verdict, read the latest verdicts."""

from datetime import datetime
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.actors import Actor
from controlplane.core.http.fields import EmptyBody, Instant, Text
from controlplane.core.http.resources import Resource, TimestampField
from controlplane.core.http.views import ApiView, Done, ListView, mutation

from . import external
from .models import ExternalVerdict


class GateBody(EmptyBody):
    verdict = Text(help_text=f"One of {', '.join(external.VERDICTS)}.")
    evidence = serializers.DictField(required=False, help_text="Any JSON object, up to 32 KiB.")
    observed_at = Instant(
        required=False,
        help_text="Time of the observation, by default now; at most 60 s ahead of the server.",
    )


class ExternalGateShape(Resource[ExternalVerdict]):
    name = serializers.CharField()
    verdict = serializers.ChoiceField(external.VERDICTS)
    evidence = serializers.DictField()
    observed_at = TimestampField()
    received_at = TimestampField()
    by = serializers.CharField()


class GateReportShape(ExternalGateShape):
    accepted = serializers.BooleanField(
        help_text="False if a later observation was stored before; it is the one returned."
    )
    dry_run = serializers.BooleanField(required=False)


class GateList(ListView[ExternalVerdict]):
    """The latest verdict of every external gate, sorted by the gate's name."""

    queryset = ExternalVerdict.objects.all()
    serializer_class = ExternalGateShape
    ordering = "name"
    read_scope = "switches:read"
    http_method_names = ["get", "head"]


class GateView(ApiView):
    path_parameters = (
        OpenApiParameter("name", str, OpenApiParameter.PATH, pattern=f"^{external.NAME.pattern}$"),
    )
    read_scope = "switches:read"
    write_scope = "gates:write"

    @extend_schema(responses=ExternalGateShape)
    def get(self, request: Request, name: str) -> Response:
        """Return the latest verdict of a gate, with its evidence and who reported it."""
        return Response(ExternalGateShape.render(external.get_verdict(name)))

    @extend_schema(request=GateBody, responses=GateReportShape)
    @mutation(GateBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, name: str) -> Done:
        """Report the verdict of a gate; the verdict is fresh for 60 s after its observation.

        It counts for ramp steps that began before the observation. A `fail` fails such a step even
        if an `ok` follows.
        """
        reported = external.record_verdict(
            name=name,
            verdict=body["verdict"],
            evidence=body.get("evidence", {}),
            observed_at=body.get("observed_at"),
            actor=actor,
            now=now,
        )
        return Done({**ExternalGateShape.render(reported.verdict), "accepted": reported.accepted})
