"""External gates over HTTP: saying how one stands, and seeing what was said last."""

from datetime import datetime
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.actors import Actor
from controlplane.core.canonical import timestamp
from controlplane.core.gates import services
from controlplane.core.gates.models import ExternalVerdict
from controlplane.core.http.fields import Instant, MutationBody, Text
from controlplane.core.http.views import ApiView, Done, ListView, mutation

ONE_GATE = (
    OpenApiParameter("name", str, OpenApiParameter.PATH, pattern=f"^{services.NAME.pattern}$"),
)


class VerdictBody(MutationBody):
    verdict = Text(help_text=f"One of {', '.join(services.EXTERNAL)}.")
    evidence = serializers.DictField(required=False, help_text="Any JSON object, up to 32 KiB.")
    observed_at = Instant(
        required=False, help_text="Now, if left out; at most 60 s ahead of our clock."
    )


class VerdictShape(serializers.Serializer[ExternalVerdict]):
    name = serializers.CharField()
    verdict = serializers.ChoiceField(services.EXTERNAL)
    evidence = serializers.DictField()
    observed_at = serializers.DateTimeField()
    received_at = serializers.DateTimeField()
    by = serializers.CharField()

    def to_representation(self, verdict: ExternalVerdict) -> dict[str, Any]:
        return resource(verdict)


class ReportedShape(VerdictShape):
    accepted = serializers.BooleanField(
        help_text="False if a later observation stands already; it is the one that is shown."
    )
    dry_run = serializers.BooleanField(required=False)


def resource(verdict: ExternalVerdict) -> dict[str, Any]:
    return {
        "name": verdict.name,
        "verdict": verdict.verdict,
        "evidence": verdict.evidence,
        "observed_at": timestamp(verdict.observed_at),
        "received_at": timestamp(verdict.received_at),
        "by": verdict.by,
    }


class GateList(ListView[ExternalVerdict]):
    """What was said last of every external gate, by name."""

    queryset = ExternalVerdict.objects.all()
    serializer_class = VerdictShape
    ordering = "name"
    read_scope = "switches:read"
    http_method_names = ["get", "head"]


class GateView(ApiView):
    path_parameters = ONE_GATE
    read_scope = "switches:read"
    write_scope = "gates:write"

    @extend_schema(responses=VerdictShape)
    def get(self, request: Request, name: str) -> Response:
        """What was said last of a gate, by whom and on what evidence."""
        return Response(resource(services.external(name)))

    @extend_schema(request=VerdictBody, responses=ReportedShape)
    @mutation(VerdictBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, name: str) -> Done:
        """Say how a gate stands. It counts for 60 s, and for steps that began before.

        A `fail` ends such a step whatever is said after it.
        """
        reported = services.report_external(
            name=name,
            verdict=body["verdict"],
            evidence=body.get("evidence", {}),
            observed_at=body.get("observed_at"),
            actor=actor,
            now=now,
        )
        return Done({**resource(reported.verdict), "accepted": reported.accepted})
