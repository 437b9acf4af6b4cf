"""External gates over HTTP: report a verdict, and read the latest ones."""

from datetime import datetime
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.actors import Actor
from controlplane.core.canonical import timestamp
from controlplane.core.http.fields import Instant, MutationBody, Text
from controlplane.core.http.views import ApiView, Done, ListView, mutation

from . import external
from .models import ExternalVerdict

ONE_GATE = (
    OpenApiParameter("name", str, OpenApiParameter.PATH, pattern=f"^{external.NAME.pattern}$"),
)


class VerdictBody(MutationBody):
    verdict = Text(help_text=f"One of {', '.join(external.VERDICTS)}.")
    evidence = serializers.DictField(required=False, help_text="Any JSON object, up to 32 KiB.")
    observed_at = Instant(
        required=False, help_text="Now, if left out; at most 60 s ahead of our clock."
    )


class VerdictShape(serializers.Serializer[ExternalVerdict]):
    name = serializers.CharField()
    verdict = serializers.ChoiceField(external.VERDICTS)
    evidence = serializers.DictField()
    observed_at = serializers.DateTimeField()
    received_at = serializers.DateTimeField()
    by = serializers.CharField()

    def to_representation(self, verdict: ExternalVerdict) -> dict[str, Any]:
        return {
            "name": verdict.name,
            "verdict": verdict.verdict,
            "evidence": verdict.evidence,
            "observed_at": timestamp(verdict.observed_at),
            "received_at": timestamp(verdict.received_at),
            "by": verdict.by,
        }


class ReportedShape(VerdictShape):
    accepted = serializers.BooleanField(
        help_text="False if a later observation stands already; it is the one that is shown."
    )
    dry_run = serializers.BooleanField(required=False)


class GateList(ListView[ExternalVerdict]):
    """The latest verdict of every external gate, by name."""

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
        """Return the latest verdict of a gate, with its evidence and who reported it."""
        return Response(VerdictShape(external.get_verdict(name)).data)

    @extend_schema(request=VerdictBody, responses=ReportedShape)
    @mutation(VerdictBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, name: str) -> Done:
        """Report the verdict of a gate. It counts for 60 s, and for steps that began before.

        A `fail` ends such a step whatever is reported after it.
        """
        reported = external.record_verdict(
            name=name,
            verdict=body["verdict"],
            evidence=body.get("evidence", {}),
            observed_at=body.get("observed_at"),
            actor=actor,
            now=now,
        )
        return Done({**VerdictShape(reported.verdict).data, "accepted": reported.accepted})
