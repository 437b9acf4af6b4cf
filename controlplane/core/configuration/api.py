"""API of the sample configuration: list, clear, load."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.actors import Actor
from controlplane.core.configuration import samples
from controlplane.core.configuration.readers import NEW, SampleItem
from controlplane.core.http.fields import EmptyBody, Text
from controlplane.core.http.openapi import BY_SESSION
from controlplane.core.http.views import ApiView, Done, mutation
from controlplane.core.reasons import MAX_CHARACTERS


class SampleItemShape(serializers.Serializer[Any]):
    kind = serializers.CharField(help_text="`dependency`, `service`, `channel` or `SLO`.")
    name = serializers.CharField()
    kept = serializers.CharField(help_text="Why clearing keeps it; empty if it is removed.")


class SamplesShape(serializers.Serializer[Any]):
    items = SampleItemShape(many=True)


class LoadedSamplesShape(serializers.Serializer[Any]):
    loaded = serializers.IntegerField(min_value=0)


class ClearSamplesBody(EmptyBody):
    reason = Text(max_length=MAX_CHARACTERS, help_text="Recorded in the audit trail.")


class SamplesView(ApiView):
    read_scope = "breakers:read"

    @extend_schema(responses=SamplesShape)
    def get(self, _request: Request) -> Response:
        """Return what is left of the sample configuration."""
        return Response(_render(samples.list_items()))


class ClearSamplesView(ApiView):
    write_scope = "breakers:write"

    @mutation(ClearSamplesBody, SamplesShape, auth=BY_SESSION)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime) -> Done:
        """Remove the samples that are not in use; return those removed and kept."""
        return Done(_render(samples.clear(reason=body["reason"], actor=actor, now=now)))


class LoadSamplesView(ApiView):
    write_scope = "breakers:write"

    @mutation(EmptyBody, LoadedSamplesShape, auth=BY_SESSION)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime) -> Done:
        """Load what is missing of the sample configuration."""
        return Done({"loaded": samples.load(actor=actor, now=now).count(NEW)})


def _render(items: Sequence[SampleItem]) -> dict[str, Any]:
    return {"items": [{"kind": one.kind, "name": one.name, "kept": one.kept} for one in items]}
