"""Where the OpenAPI document is served, for programs and for people."""

from typing import Any

from drf_spectacular.renderers import (
    OpenApiJsonRenderer,
    OpenApiJsonRenderer2,
    OpenApiYamlRenderer,
    OpenApiYamlRenderer2,
)
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.permissions import AllowAny


class SchemaView(SpectacularAPIView):
    """JSON unless YAML is asked for. Open to all: it tells how to ask, not what the answers are."""

    renderer_classes = [
        OpenApiJsonRenderer2,
        OpenApiJsonRenderer,
        OpenApiYamlRenderer,
        OpenApiYamlRenderer2,
    ]
    authentication_classes: list[Any] = []
    permission_classes = [AllowAny]


class DocsView(SpectacularSwaggerSplitView):
    """The same, to read. Its scripts are files, so the strict policy stands as it is everywhere."""

    template_name = "core/api_docs.html"
    authentication_classes: list[Any] = []
    permission_classes = [AllowAny]
