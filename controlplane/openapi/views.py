"""Views of the OpenAPI document, as JSON or YAML and as a Swagger page."""

from typing import Any

from django.http import HttpResponse
from django.utils.cache import get_conditional_response, patch_vary_headers
from drf_spectacular.renderers import (
    OpenApiJsonRenderer,
    OpenApiJsonRenderer2,
    OpenApiYamlRenderer,
    OpenApiYamlRenderer2,
)
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.views import APIView

from controlplane.core.content_encoding import accepts_gzip
from controlplane.openapi import document

CACHE_CONTROL = "public, max-age=60"


class SchemaView(APIView):
    """The OpenAPI document as JSON or YAML, public because it contains no data."""

    renderer_classes = [
        OpenApiJsonRenderer2,
        OpenApiJsonRenderer,
        OpenApiYamlRenderer,
        OpenApiYamlRenderer2,
    ]
    authentication_classes: list[Any] = []
    permission_classes = [AllowAny]
    schema = None

    def get(self, request: Request) -> HttpResponse:
        renderer = request.accepted_renderer
        form = document.YAML if "yaml" in renderer.format else document.JSON
        prepared = document.get_representation(form)
        accepted = request.headers.get("Accept-Encoding", "")
        compressed = accepts_gzip(accepted.encode("latin-1", "replace"))
        content = prepared.compressed if compressed else prepared.plain
        response = HttpResponse(content, content_type=renderer.media_type)
        if compressed:
            response["Content-Encoding"] = "gzip"
        response["Content-Disposition"] = f'inline; filename="switchgear.{form}"'
        response["ETag"] = etag = prepared.compressed_etag if compressed else prepared.etag
        response["Cache-Control"] = CACHE_CONTROL
        patch_vary_headers(response, ("Accept", "Accept-Encoding"))
        return get_conditional_response(request._request, etag, response=response) or response


class DocsView(SpectacularSwaggerSplitView):
    """Swagger page of the OpenAPI document, without inline scripts, which the CSP forbids."""

    template_name = "openapi/docs.html"
    authentication_classes: list[Any] = []
    permission_classes = [AllowAny]
