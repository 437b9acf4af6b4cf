"""Error responses of all API operations: the component `Problem`, and one response per status."""

from typing import Any

from controlplane.core import errors, problem
from controlplane.core.errors import DomainError
from controlplane.core.http.problems import UnsupportedMediaType
from controlplane.core.idempotency.services import HEADER

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
            "description": "Messages by field, if fields are wrong.",
            "additionalProperties": {"type": "array", "items": {"type": "string"}},
        },
        "action": {
            "type": "string",
            "description": "The action, such as `release`, if a rule of authority refuses it.",
        },
        "resource": {"type": "string", "description": "Such as `segment:finance`."},
        "owner": {"type": ["string", "null"], "description": "Slug of the team that owns it."},
        "who_may": {
            "type": "array",
            "items": {"type": "string"},
            "description": "User names of a few people who may do it.",
        },
        "on_call": {
            "type": ["string", "null"],
            "description": "The person who is on call for the owner.",
        },
        "can_ask": {
            "type": "boolean",
            "description": "True if you can ask the owner: `POST /api/v1/authority/ask`.",
        },
    },
    "additionalProperties": True,
}
_RETRY_AFTER = {
    "Retry-After": {
        "description": "Seconds to wait before the next attempt.",
        "schema": {"type": "integer", "minimum": 1},
    }
}
_BAD_REASON = {"reason": ["Enter a reason of at least 10 characters."]}
ERRORS: dict[str, tuple[str, str, DomainError]] = {
    "400": ("BadRequest", "The request is malformed.", errors.InvalidInput(_BAD_REASON)),
    "401": (
        "Unauthenticated",
        "Credentials are missing or not valid.",
        errors.Unauthenticated("Send a token as Authorization: Bearer sg_…."),
    ),
    "403": (
        "Forbidden",
        "A scope or a role is missing, or another team owns the resource.",
        errors.Forbidden(
            "Payments owns segment:finance. Only its members may release it.",
            action="release",
            resource="segment:finance",
            owner="payments",
            who_may=["kim"],
            on_call="kim",
            can_ask=True,
        ),
    ),
    "404": (
        "NotFound",
        "The resource does not exist.",
        errors.NotFound("This ramp doesn't exist."),
    ),
    "409": (
        "Conflict",
        "The current state, or a safety rule (`rule`, `would_pass`), doesn't allow it.",
        errors.Conflict("The switch is already engaged.", episode=42),
    ),
    "413": ("TooLarge", "The body is too large.", errors.TooLarge("Send at most 64 KiB.")),
    "415": (
        "UnsupportedMediaType",
        "The body is not JSON.",
        UnsupportedMediaType("Send the body as Content-Type: application/json, in UTF-8."),
    ),
    "422": (
        "IdempotencyKeyReused",
        "The Idempotency-Key was used with another body.",
        errors.KeyReused("Use a new key."),
    ),
    "429": (
        "TooManyRequests",
        "Too many requests.",
        errors.TooManyRequests("Wait, then try again.", retry_after=1),
    ),
    "503": (
        "Unavailable",
        "The database does not respond, or too many requests are running.",
        errors.Unavailable("Repeat the request with the same Idempotency-Key."),
    ),
}
"""Name, description and example of the response of each status."""
RATE_LIMITED = {"report_instance", "backtest_slo"}
WITHOUT_CONFLICT = {"check_traffic", "report_instance", "evaluate_flags", "evaluate_flag"}
_RESPONSES = "#/components/responses/"


def declare_problems(document: dict[str, Any]) -> None:
    """Add the error responses to the document, and references to them to each operation."""
    components = document["components"]
    components["schemas"]["Problem"] = PROBLEM
    by_name = {
        name: _response(status, description, example)
        for status, (name, description, example) in ERRORS.items()
    }
    default = {"Problem": _response("", "Any other error.", errors.InternalError("Report it."))}
    components["responses"] = default | by_name
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            responses = operation["responses"]
            for status in _possible_statuses(path, method, operation):
                responses.setdefault(status, {"$ref": _RESPONSES + ERRORS[status][0]})
            responses.setdefault("default", {"$ref": _RESPONSES + "Problem"})


def _possible_statuses(path: str, method: str, operation: dict[str, Any]) -> list[str]:
    name, changes = operation["operationId"], method != "get"
    has_key = any(it.get("name") == HEADER for it in operation.get("parameters", ()))
    has_body = "requestBody" in operation
    is_possible = {
        "400": True,
        "401": True,
        "403": True,
        "404": "{" in path,
        "409": changes and name not in WITHOUT_CONFLICT,
        "413": has_body,
        "415": has_body,
        "422": has_key,
        "429": name in RATE_LIMITED,
        "503": True,
    }
    return [status for status, possible in is_possible.items() if possible]


def _response(status: str, description: str, example: DomainError) -> dict[str, Any]:
    content = {
        "schema": {"$ref": "#/components/schemas/Problem"},
        "example": problem.problem_document(example),
    }
    headers = {"headers": _RETRY_AFTER} if status in ("429", "503") else {}
    return {"description": description, "content": {problem.MEDIA_TYPE: content}, **headers}
