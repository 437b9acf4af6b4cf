"""The API of OpenSLO documents: import and export."""

from datetime import datetime
from typing import IO, Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from controlplane.core.actors import Actor
from controlplane.core.errors import InvalidInput
from controlplane.core.http import json_format
from controlplane.core.http.fields import EmptyBody, Filters, Text
from controlplane.core.http.json_format import StrictJSONParser
from controlplane.core.http.views import ApiView, Done, mutation
from controlplane.core.protocol import max_body_bytes, too_large
from slo.objectives import spec_import
from slo.objectives.openslo import export

from .slos import READ, WRITE

QUERY_FIELDS = ("prometheus_url", "reason")
"""Query parameters that accompany a YAML body; `dry_run` is one more."""
FORMATS = {"json": "application/json", "yaml": "application/yaml"}


class YamlParser(BaseParser):
    """A parser that returns a YAML body as the field `text`, plus the fields in the URL's query."""

    media_type = "application/yaml"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Any = None
    ) -> dict[str, Any]:
        request = parser_context["request"]
        limit = max_body_bytes(request.path)
        body = stream.read(limit + 1)
        if len(body) > limit:
            raise too_large(limit)
        try:
            text = body.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InvalidInput({"text": ["Must be UTF-8."]}) from error
        query = request.query_params
        beside = {name: query[name] for name in QUERY_FIELDS if name in query}
        dry_run = query.get("dry_run", "false")
        if dry_run not in ("true", "false"):
            raise InvalidInput({"dry_run": ["Must be true or false."]})
        return {"text": text, **beside, "dry_run": dry_run == "true"}


class OldYamlParser(YamlParser):
    media_type = "application/x-yaml"


class TextYamlParser(YamlParser):
    media_type = "text/yaml"


class OpenSloParser(StrictJSONParser):
    """A JSON parser that also accepts a single document as the whole body."""

    def parse(self, *args: Any, **options: Any) -> dict[str, Any]:
        found = super().parse(*args, **options)
        if not {"apiVersion", "version"} & found.keys():
            return found
        beside = {name: found[name] for name in (*QUERY_FIELDS, "dry_run") if name in found}
        return {"documents": [found], **beside}


class OpenSloBody(EmptyBody):
    """Documents of OpenSLO, Sloth or Pyrra: the list `documents`, the YAML `text`, or both."""

    documents = serializers.ListField(
        child=serializers.JSONField(), required=False, help_text="Documents, as JSON."
    )
    text = Text(required=False, help_text="The documents as one YAML text.")
    prometheus_url = Text(required=False, help_text="Prometheus URL for documents that name none.")
    reason = Text(required=False, max_length=2000, help_text="Reason for the audit trail.")


class ImportedSloShape(serializers.Serializer[Any]):
    name = serializers.CharField()
    outcome = serializers.ChoiceField((spec_import.CREATED, spec_import.CHANGED, spec_import.SAME))


class OpenSloImportShape(serializers.Serializer[Any]):
    slos = ImportedSloShape(many=True)
    remarks = serializers.ListField(
        child=serializers.CharField(), help_text="Fields that were left out or changed."
    )
    dry_run = serializers.BooleanField(required=False)


class OpenSloExportFilters(Filters):
    slo = serializers.CharField(
        required=False, max_length=120, help_text="Name of the only SLO to export."
    )
    format = serializers.ChoiceField(tuple(FORMATS), default="json")


class OpenSloView(ApiView):
    parser_classes = [OpenSloParser, YamlParser, OldYamlParser, TextYamlParser]
    filters = OpenSloExportFilters
    query_parameters = (*QUERY_FIELDS, "dry_run")
    read_scope = READ
    write_scope = WRITE

    @extend_schema(
        operation_id="openslo_export",
        responses={
            (200, "application/json"): OpenApiResponse(OpenApiTypes.OBJECT, "`documents`."),
            (200, "application/yaml"): OpenApiResponse(OpenApiTypes.STR, "The same as YAML."),
        },
    )
    def get(self, request: Request) -> HttpResponse:
        """Export SLOs as OpenSLO v1 documents, which can be imported without loss."""
        parameters = self.filters.parse(request.query_params)
        found = export.export_slos([parameters["slo"]] if "slo" in parameters else ())
        content_type = FORMATS[parameters["format"]]
        if parameters["format"] == "json":
            return HttpResponse(json_format.dumps({"documents": found}), content_type=content_type)
        attachment = {"Content-Disposition": 'attachment; filename="slos.yaml"'}
        body = export.to_yaml(found)
        return HttpResponse(body, content_type=content_type, headers=attachment)

    @extend_schema(
        operation_id="openslo_import",
        request={"application/json": OpenSloBody, "application/yaml": OpenApiTypes.STR},
        responses=OpenSloImportShape,
    )
    @mutation(OpenSloBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime) -> Done:
        """Import the SLOs of OpenSLO v1, Sloth and Pyrra documents, all or none.

        `remarks` in the response list the fields that were left out or changed.
        """
        raw = list(body.get("documents", ()))
        if "text" in body:
            raw += spec_import.parse_text(body["text"])
        outcomes, remarks = spec_import.import_slos(
            raw,
            server=body.get("prometheus_url", ""),
            actor=actor,
            now=now,
            reason=body.get("reason", ""),
        )
        slos = [{"name": name, "outcome": outcome} for name, outcome in outcomes.items()]
        return Done({"slos": slos, "remarks": list(remarks)})
