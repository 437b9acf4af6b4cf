"""Extensions of drf-spectacular's OpenAPI document."""

from typing import Any

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import get_lib_doc_excludes
from drf_spectacular.utils import OpenApiParameter

from controlplane.core.http.fields import Body, EmptyBody, Filters
from controlplane.core.http.resources import Resource
from controlplane.core.idempotency.services import HEADER

# For operations that tokens can't use.
BY_SESSION: list[Any] = [{"session": []}]


def undocumented_bases() -> list[type]:
    """Return base classes whose docstrings drf-spectacular must leave out of the API's schema."""
    excluded = get_lib_doc_excludes()  # type: ignore[no-untyped-call]
    return [*excluded, Body, Filters, EmptyBody, Resource]


class ApiSchema(AutoSchema):
    """drf-spectacular schema with our path parameters, list filters and headers of mutations."""

    def get_override_parameters(self) -> list[Any]:
        parameters = list(super().get_override_parameters())
        parameters += getattr(self.view, "path_parameters", ())
        filters = getattr(self.view, "filters", None)
        if self.method == "GET" and filters is not None and filters().fields:
            parameters.append(filters)
        handler = getattr(self.view, self.method.lower(), None)
        if getattr(handler, "is_mutation", False):
            parameters.append(
                OpenApiParameter(
                    HEADER,
                    str,
                    OpenApiParameter.HEADER,
                    description="1 to 200 visible ASCII characters. A repeated request within 24 "
                    "hours gets the first 2xx response, with `Idempotent-Replayed: true`.",
                )
            )
        return parameters

    def _get_request_body(self, direction: str = "request") -> Any:
        """Return the request body, also of DELETE methods, whose body drf-spectacular omits."""
        method = self.method
        self.method = "POST" if method == "DELETE" else method
        try:
            return super()._get_request_body(direction)  # type: ignore[no-untyped-call]
        finally:
            self.method = method


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "controlplane.accounts.authentication.rest.TokenAuthentication"
    name = ["token", "apiKey"]

    def get_security_requirement(self, auto_schema: AutoSchema) -> list[dict[str, list[Any]]]:
        # Two alternatives: DRF Spectacular would build one requirement that needs both.
        return [{"token": []}, {"apiKey": []}]

    def get_security_definition(self, auto_schema: AutoSchema) -> list[dict[str, Any]]:
        return [
            {"type": "http", "scheme": "bearer", "bearerFormat": "sg_<prefix>_<secret>"},
            {"type": "apiKey", "in": "header", "name": "X-API-Key"},
        ]


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "controlplane.accounts.authentication.rest.PersonAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        return {
            "type": "apiKey",
            "in": "cookie",
            "name": settings.SESSION_COOKIE_NAME,
            "description": "A signed-in browser. Mutations also carry X-CSRFToken.",
        }
