"""Views of the OpenAPI document: JSON, YAML, and the pages of the API reference."""

from functools import lru_cache
from typing import Any

import orjson
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import get_conditional_response, patch_vary_headers
from django.views.decorators.http import require_GET
from drf_spectacular.renderers import (
    OpenApiJsonRenderer,
    OpenApiJsonRenderer2,
    OpenApiYamlRenderer,
    OpenApiYamlRenderer2,
)
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.views import APIView

from controlplane.core.content_encoding import accepts_gzip
from controlplane.openapi import document, reference

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


@require_GET
def reference_index(request: HttpRequest) -> HttpResponse:
    """Page that lists all operations of the API by section; public, as the document is."""
    document, sections = _read_reference()
    return render(
        request, "openapi/reference.html", {"document": document, "sections": sections.values()}
    )


@require_GET
def reference_section(request: HttpRequest, slug: str) -> HttpResponse:
    """Page of one section: its operations with parameters, bodies, examples and responses."""
    section = _read_reference()[1].get(slug)
    if section is None:
        raise Http404
    return render(request, "openapi/reference.html", {"section": section})


def _read_reference() -> tuple[dict[str, Any], dict[str, reference.Section]]:
    """Return the OpenAPI document and its sections.

    Raises :class:`Unavailable` while another thread builds the document.
    """
    return _parse(document.get_representation(document.JSON).plain)


@lru_cache(maxsize=1)
def _parse(content: bytes) -> tuple[dict[str, Any], dict[str, reference.Section]]:
    parsed: dict[str, Any] = orjson.loads(content)
    return parsed, reference.build_sections(parsed)
