"""Rules for the documents of the protocol; each function yields a sentence for each problem."""

from collections.abc import Iterator, Mapping
from typing import Any

from .session import JSON_TYPE, FlagResponse

REASONS = frozenset(
    {"STATIC", "DEFAULT", "TARGETING_MATCH", "SPLIT", "CACHED", "DISABLED", "UNKNOWN", "STALE"}
)
EVALUATION_CODES = frozenset({"PARSE_ERROR", "TARGETING_KEY_MISSING", "INVALID_CONTEXT", "GENERAL"})
NOT_FOUND = "FLAG_NOT_FOUND"
TYPES: Mapping[type, str] = {
    bool: "a boolean",
    str: "a string",
    int: "a number",
    float: "a number",
    dict: "an object",
    list: "an array",
    type(None): "null",
}


def name_type(value: Any) -> str:
    """Return the JSON type of a value in words."""
    return TYPES[type(value)]


def find_status_problems(response: FlagResponse, *expected: int) -> Iterator[str]:
    if response.status not in expected:
        wanted = " or ".join(map(str, expected))
        yield f"status {response.status} instead of {wanted}"


def find_json_problems(response: FlagResponse) -> Iterator[str]:
    if response.media_type != JSON_TYPE:
        yield f"Content-Type is {response.media_type or 'missing'} instead of {JSON_TYPE}"
    if not isinstance(response.parse_json(), dict):
        yield "the body is not a JSON object"


def find_metadata_problems(document: Mapping[str, Any]) -> Iterator[str]:
    metadata = document.get("metadata", {})
    if not isinstance(metadata, dict):
        yield f"metadata is {name_type(metadata)} instead of an object"
        return
    for name, value in metadata.items():
        if not isinstance(value, bool | str | int | float):
            yield f"metadata.{name} is {name_type(value)} instead of a boolean, string or number"


def find_error_problems(
    document: Mapping[str, Any], codes: frozenset[str], key: str | None
) -> Iterator[str]:
    """Yield problems of an error body; `key` is the flag's, or None if it needs none."""
    code = document.get("errorCode")
    if not isinstance(code, str) or code not in codes:
        yield f"errorCode is {code!r} instead of one of {', '.join(sorted(codes))}"
    details = document.get("errorDetails", "")
    if not isinstance(details, str):
        yield f"errorDetails is {name_type(details)} instead of a string"
    if key is not None and document.get("key") != key:
        yield f"key is {document.get('key')!r} instead of {key!r}"


def find_item_problems(item: Any) -> Iterator[str]:
    """Yield problems of an entry of a bulk response."""
    if not isinstance(item, dict):
        yield f"an entry of flags is {name_type(item)} instead of an object"
        return
    key = item.get("key")
    if not isinstance(key, str):
        yield "an entry of flags has no key"
        return
    if "errorCode" in item:
        problems = find_error_problems(item, EVALUATION_CODES | {NOT_FOUND}, None)
    else:
        problems = find_success_problems(item)
    yield from (f"{key}: {problem}" for problem in problems)


def find_success_problems(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield problems of optional fields of an evaluation, with wrong types."""
    for name in ("reason", "variant"):
        value = document.get(name, "")
        if not isinstance(value, str):
            yield f"{name} is {name_type(value)} instead of a string"
    yield from find_metadata_problems(document)
