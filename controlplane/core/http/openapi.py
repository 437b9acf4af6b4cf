"""The OpenAPI document: what drf-spectacular can't see by itself."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter

from controlplane.core.idempotency.services import HEADER

ABOUT = """
Credentials: `Authorization: Bearer sg_…`, `X-API-Key`, or a signed-in browser (with `X-CSRFToken`).
Every answer carries `X-Request-ID`; yours is kept if it is up to 128 of `A-Za-z0-9._-`. Those of
the console carry `Switchgear-Environment`, too: the installation's name, percent-encoded.

Bodies are JSON objects of at most 64 KiB (reports: 512 KiB, hooks, OpenSLO and dead letters: 1 MiB,
points of SLIs: 4 MiB). Fields nobody knows are ignored, except those that look like a misspelling
of one that is known (`dryrun`), and all unknown ones of `/check`. Where a field may be left out,
null means the same.

`dry_run` does everything and rolls it back: the answer is what would have happened, and an id in it
names nothing. Lists come in pages; follow `next`. Errors are `application/problem+json`; where
fields are wrong, `errors` maps each (`evidence.labels.0`) to what is wrong with it.
"""
# Of what no token may do.
BY_SESSION: list[Any] = [{"session": []}]
PROBLEM = {
    "type": "object",
    "description": "RFC 9457. `type` is urn:switchgear:problem:<slug>; compare it, don't fetch it.",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "For people: what to do next."},
        "errors": {
            "type": "object",
            "description": "What is wrong with each field, where fields are wrong.",
            "additionalProperties": {"type": "array", "items": {"type": "string"}},
        },
    },
    "additionalProperties": True,
}


class ApiSchema(AutoSchema):
    """Adds what the view knows of its path, a list's filters, and every mutation's header."""

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
                    description="1 to 200 visible ASCII characters. A repeat within 24 hours gets "
                    "the first 2xx answer again, with `Idempotent-Replayed: true`.",
                )
            )
        return parameters

    def _get_request_body(self, direction: str = "request") -> Any:
        """Also of what removes something: it says why. The generator knows of none there."""
        asked = self.method
        self.method = "POST" if asked == "DELETE" else asked
        try:
            return super()._get_request_body(direction)  # type: ignore[no-untyped-call]
        finally:
            self.method = asked


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "controlplane.core.http.authentication.TokenAuthentication"
    name = ["token", "apiKey"]

    def get_security_requirement(self, auto_schema: AutoSchema) -> list[dict[str, list[Any]]]:
        """Either of the two; as one requirement they would be both."""
        return [{"token": []}, {"apiKey": []}]

    def get_security_definition(self, auto_schema: AutoSchema) -> list[dict[str, Any]]:
        return [
            {"type": "http", "scheme": "bearer", "bearerFormat": "sg_<prefix>_<secret>"},
            {"type": "apiKey", "in": "header", "name": "X-API-Key"},
        ]


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "controlplane.core.http.authentication.PersonAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        return {
            "type": "apiKey",
            "in": "cookie",
            "name": "sessionid",
            "description": "A signed-in browser. Mutations also carry X-CSRFToken.",
        }


def finished(result: dict[str, Any], **_more: Any) -> dict[str, Any]:
    """The last touch on the document: every operation may answer with a problem."""
    _drop_marks(result)
    result["info"]["description"] = ABOUT.strip()
    schemas = result.setdefault("components", {}).setdefault("schemas", {})
    schemas["Problem"] = PROBLEM
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for operations in result["paths"].values():
        for operation in operations.values():
            problem = {"description": "A problem.", "content": content}
            operation["responses"].setdefault("default", problem)
    return result


def _drop_marks(value: Any) -> None:
    """Enumerations stay where they are, so the generator's ids for them say nothing."""
    if isinstance(value, dict):
        value.pop("x-spec-enum-id", None)
    for below in value.values() if isinstance(value, dict) else value:
        if isinstance(below, dict | list):
            _drop_marks(below)
