"""Checks of error responses: unknown flags, broken bodies, invalid contexts."""

from collections.abc import Iterator
from typing import Any

from ofrep_conformance.registry import Level, Skip, add_check
from ofrep_conformance.session import FLAGS_PATH, FlagResponse, Session, flag_path
from ofrep_conformance.shapes import (
    EVALUATION_CODES,
    NOT_FOUND,
    find_error_problems,
    find_json_problems,
    find_status_problems,
)

NOT_FOUND_SOURCE = "openapi.yaml, 404 of POST /ofrep/v1/evaluate/flags/{key}"
FAILURE_SOURCE = "openapi.yaml, 400 of POST /ofrep/v1/evaluate/flags/{key}"
BULK_SOURCE = "openapi.yaml, 400 of POST /ofrep/v1/evaluate/flags"
CODES_SOURCE = "OpenFeature specification, types: error code"
BROKEN_JSON = b'{"context": {"targetingKey": "user-1"'
PARSE_ERROR = "PARSE_ERROR"
INVALID_CONTEXT = "INVALID_CONTEXT"
TARGETING_KEY_MISSING = "TARGETING_KEY_MISSING"


def some_key(session: Session) -> str:
    """Return the key of a known flag; skip the check if there is none."""
    if not session.manifest.flags:
        raise Skip("the manifest names no flag")
    return session.manifest.flags[0].key


def post_broken(session: Session) -> tuple[str, FlagResponse]:
    key = some_key(session)
    return key, session.send("POST", flag_path(key), BROKEN_JSON)


def find_code_problems(response: FlagResponse, *codes: str) -> Iterator[str]:
    code = response.as_object().get("errorCode")
    if code not in codes:
        yield f"errorCode is {code!r} instead of {' or '.join(codes)}"


@add_check("errors.unknown-flag", Level.MUST, "An unknown flag gives 404.", NOT_FOUND_SOURCE)
def check_unknown_flag(session: Session) -> Iterator[str]:
    yield from find_status_problems(session.evaluate(session.manifest.unknown), 404)


@add_check(
    "errors.not-found-body",
    Level.MUST,
    "The body of a 404 has the key and errorCode FLAG_NOT_FOUND, as JSON.",
    NOT_FOUND_SOURCE,
)
def check_not_found_body(session: Session) -> Iterator[str]:
    key = session.manifest.unknown
    response = session.evaluate(key)
    yield from find_json_problems(response)
    yield from find_error_problems(response.as_object(), frozenset({NOT_FOUND}), key)


@add_check(
    "errors.unknown-unicode-key",
    Level.MUST,
    "A key is decoded as UTF-8; an unknown one gives 404 with the decoded key.",
    "RFC 3986, 2.5; " + NOT_FOUND_SOURCE,
)
def check_unknown_unicode_key(session: Session) -> Iterator[str]:
    key = f"{session.manifest.unknown}-스위치-é"
    response = session.evaluate(key)
    yield from find_status_problems(response, 404)
    yield from find_error_problems(response.as_object(), frozenset({NOT_FOUND}), key)


@add_check(
    "errors.slash-in-key",
    Level.SHOULD,
    "A percent-encoded slash belongs to the key.",
    "RFC 3986, 2.2",
)
def check_slash_in_key(session: Session) -> Iterator[str]:
    key = f"{session.manifest.unknown}/part"
    response = session.evaluate(key)
    yield from find_status_problems(response, 404)
    yield from find_error_problems(response.as_object(), frozenset({NOT_FOUND}), key)


@add_check("errors.broken-json", Level.MUST, "A body that is not JSON gives 400.", FAILURE_SOURCE)
def check_broken_json(session: Session) -> Iterator[str]:
    yield from find_status_problems(post_broken(session)[1], 400)


@add_check(
    "errors.failure-body",
    Level.MUST,
    "The body of a 400 has the key and an errorCode of the protocol, as JSON.",
    FAILURE_SOURCE,
)
def check_failure_body(session: Session) -> Iterator[str]:
    key, response = post_broken(session)
    if response.status != 400:
        raise Skip("broken JSON gives no 400")
    yield from find_json_problems(response)
    yield from find_error_problems(response.as_object(), EVALUATION_CODES, key)


@add_check(
    "errors.parse-error",
    Level.SHOULD,
    "The errorCode for broken JSON is PARSE_ERROR.",
    CODES_SOURCE,
)
def check_parse_error(session: Session) -> Iterator[str]:
    yield from find_code_problems(post_broken(session)[1], PARSE_ERROR)


@add_check(
    "errors.invalid-context",
    Level.MUST,
    "A context that is not an object gives 400.",
    FAILURE_SOURCE,
)
def check_invalid_context(session: Session) -> Iterator[str]:
    for context in ([1], "user-1", 7):
        response = session.evaluate(some_key(session), context)
        yield from (f"context {context!r}: {each}" for each in find_status_problems(response, 400))


@add_check(
    "errors.invalid-context-code",
    Level.SHOULD,
    "The errorCode for a context that is not an object is INVALID_CONTEXT.",
    CODES_SOURCE,
)
def check_invalid_context_code(session: Session) -> Iterator[str]:
    response = session.evaluate(some_key(session), [1])
    yield from find_code_problems(response, INVALID_CONTEXT, PARSE_ERROR)


@add_check(
    "errors.targeting-key-type",
    Level.SHOULD,
    "A targeting key that is not a string gives 400 with INVALID_CONTEXT.",
    "openapi.yaml, schema of the context",
)
def check_targeting_key_type(session: Session) -> Iterator[str]:
    context: dict[str, Any] = {**session.manifest.context, "targetingKey": {"id": 7}}
    response = session.evaluate(some_key(session), context)
    yield from find_status_problems(response, 400)
    yield from find_code_problems(response, INVALID_CONTEXT, PARSE_ERROR)


@add_check(
    "errors.targeting-key-missing",
    Level.MUST,
    "Without its targeting key, a flag gives 400 with TARGETING_KEY_MISSING.",
    CODES_SOURCE,
)
def check_targeting_key_missing(session: Session) -> Iterator[str]:
    flags = [flag for flag in session.manifest.flags if flag.requires_targeting_key]
    if not flags:
        raise Skip("the manifest names no flag that requires a targeting key")
    context = {
        name: value for name, value in session.manifest.context.items() if name != "targetingKey"
    }
    for flag in flags:
        response = session.evaluate(flag.key, context)
        problems = [
            *find_status_problems(response, 400),
            *find_code_problems(response, TARGETING_KEY_MISSING),
        ]
        yield from (f"{flag.key}: {each}" for each in problems)


@add_check(
    "errors.empty-body",
    Level.SHOULD,
    "A request without a body is answered with an evaluation or 400, never with 5xx.",
    "openapi.yaml, the request body is not required",
)
def check_empty_body(session: Session) -> Iterator[str]:
    for path in (flag_path(some_key(session)), FLAGS_PATH):
        for body in (None, b"", b"{}"):
            response = session.send("POST", path, body)
            problems = find_status_problems(response, 200, 400, 411, 415)
            yield from (f"{path} with {body!r}: {each}" for each in problems)


@add_check("errors.bulk-broken-json", Level.MUST, "Bulk: broken JSON gives 400.", BULK_SOURCE)
def check_bulk_broken_json(session: Session) -> Iterator[str]:
    yield from find_status_problems(session.send("POST", FLAGS_PATH, BROKEN_JSON), 400)


@add_check(
    "errors.bulk-failure-body",
    Level.MUST,
    "Bulk: the body of a 400 has an errorCode, as JSON.",
    BULK_SOURCE,
)
def check_bulk_failure_body(session: Session) -> Iterator[str]:
    response = session.send("POST", FLAGS_PATH, BROKEN_JSON)
    if response.status != 400:
        raise Skip("broken JSON gives no 400")
    yield from find_json_problems(response)
    code = response.as_object().get("errorCode")
    if not isinstance(code, str):
        yield f"errorCode is {code!r} instead of a string"


@add_check(
    "errors.bulk-invalid-context",
    Level.MUST,
    "Bulk: a context that is not an object gives 400.",
    BULK_SOURCE,
)
def check_bulk_invalid_context(session: Session) -> Iterator[str]:
    yield from find_status_problems(session.evaluate_all([1]), 400)
