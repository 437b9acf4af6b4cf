"""Checks of `POST /ofrep/v1/evaluate/flags/{key}` for known flags."""

from collections.abc import Iterator

from ofrep_conformance.manifest import KnownFlag
from ofrep_conformance.registry import Level, Skip, add_check
from ofrep_conformance.session import FlagResponse, Session, flag_path
from ofrep_conformance.shapes import (
    REASONS,
    find_json_problems,
    find_metadata_problems,
    find_status_problems,
    name_type,
)

SOURCE = "openapi.yaml, POST /ofrep/v1/evaluate/flags/{key}"
SUCCESS = "openapi.yaml, schema of a successful evaluation"
REASON_TYPES = "OpenFeature specification, types: resolution reason"


def evaluate_known(session: Session) -> Iterator[tuple[KnownFlag, FlagResponse]]:
    """Evaluate each flag of the manifest; skip the check if there is none."""
    if not session.manifest.flags:
        raise Skip("the manifest names no flag")
    for flag in session.manifest.flags:
        yield flag, session.evaluate(flag.key)


@add_check("single.status", Level.MUST, "A known flag gives 200.", SOURCE)
def check_status(session: Session) -> Iterator[str]:
    for flag, response in evaluate_known(session):
        yield from (f"{flag.key}: {each}" for each in find_status_problems(response, 200))


@add_check("single.json", Level.MUST, "An evaluation is an application/json object.", SOURCE)
def check_json(session: Session) -> Iterator[str]:
    for flag, response in evaluate_known(session):
        yield from (f"{flag.key}: {each}" for each in find_json_problems(response))


@add_check("single.type", Level.MUST, "The value has the JSON type of its flag.", SUCCESS)
def check_type(session: Session) -> Iterator[str]:
    for flag, response in evaluate_known(session):
        document = response.as_object()
        if "value" not in document:
            yield f"{flag.key}: value is missing"
        elif name_type(document["value"]) != name_type(flag.value):
            found, wanted = name_type(document["value"]), name_type(flag.value)
            yield f"{flag.key}: value is {found} instead of {wanted}"


@add_check("single.value", Level.MUST, "The value is the one that is configured.", SUCCESS)
def check_value(session: Session) -> Iterator[str]:
    for flag, response in evaluate_known(session):
        value = response.as_object().get("value")
        if value != flag.value:
            yield f"{flag.key}: value is {value!r} instead of {flag.value!r}"


@add_check("single.key", Level.SHOULD, "The evaluation repeats the flag's key.", SUCCESS)
def check_key(session: Session) -> Iterator[str]:
    for flag, response in evaluate_known(session):
        if (key := response.as_object().get("key")) != flag.key:
            yield f"{flag.key}: key is {key!r}"


@add_check("single.variant", Level.MUST, "A variant, if any, is a string.", SUCCESS)
def check_variant(session: Session) -> Iterator[str]:
    for flag, response in evaluate_known(session):
        variant = response.as_object().get("variant", "")
        if not isinstance(variant, str):
            yield f"{flag.key}: variant is {name_type(variant)}; leave it out instead"


@add_check("single.reason", Level.MUST, "A reason, if any, is a string.", SUCCESS)
def check_reason(session: Session) -> Iterator[str]:
    for flag, response in evaluate_known(session):
        reason = response.as_object().get("reason", "")
        if not isinstance(reason, str):
            yield f"{flag.key}: reason is {name_type(reason)}"


@add_check(
    "single.known-reason",
    Level.SHOULD,
    "The reason is one that OpenFeature defines for a success.",
    REASON_TYPES,
)
def check_known_reason(session: Session) -> Iterator[str]:
    for flag, response in evaluate_known(session):
        reason = response.as_object().get("reason", "UNKNOWN")
        if not isinstance(reason, str) or reason not in REASONS:
            yield f"{flag.key}: reason is {reason!r}"


@add_check(
    "single.metadata",
    Level.MUST,
    "Metadata, if any, is an object of booleans, strings and numbers.",
    SUCCESS,
)
def check_metadata(session: Session) -> Iterator[str]:
    for flag, response in evaluate_known(session):
        yield from (f"{flag.key}: {each}" for each in find_metadata_problems(response.as_object()))


@add_check("single.no-error", Level.MUST, "A success has no errorCode.", SUCCESS)
def check_no_error(session: Session) -> Iterator[str]:
    for flag, response in evaluate_known(session):
        if response.status == 200 and response.as_object().get("errorCode") is not None:
            yield f"{flag.key}: 200 with errorCode {response.as_object()['errorCode']!r}"


@add_check(
    "single.rich-context",
    Level.MUST,
    "A context of any JSON types and of any Unicode text is accepted.",
    "openapi.yaml, schema of the context",
)
def check_rich_context(session: Session) -> Iterator[str]:
    context = {
        **session.manifest.context,
        "conformance": {"list": [1, 2.5, None, True], "text": "사용자 👩‍👩‍👧 é", "big": 2**53 + 1},
    }
    for flag in session.manifest.flags[:1]:
        yield from find_status_problems(session.evaluate(flag.key, context), 200)
    if not session.manifest.flags:
        raise Skip("the manifest names no flag")


@add_check(
    "single.unicode-targeting-key",
    Level.MUST,
    "A targeting key may be any Unicode text.",
    "openapi.yaml, schema of the context",
)
def check_unicode_targeting_key(session: Session) -> Iterator[str]:
    if not session.manifest.flags:
        raise Skip("the manifest names no flag")
    context = {**session.manifest.context, "targetingKey": "사용자-7 👩‍👩‍👧"}
    yield from find_status_problems(session.evaluate(session.manifest.flags[0].key, context), 200)


@add_check(
    "single.percent-encoding",
    Level.MUST,
    "A key with percent-encoded characters is the same key.",
    "RFC 3986, 6.2.2.2",
)
def check_percent_encoding(session: Session) -> Iterator[str]:
    if not session.manifest.flags:
        raise Skip("the manifest names no flag")
    flag = session.manifest.flags[0]
    path = flag_path(flag.key, escape_all=True)
    response = session.post(path, {"context": session.manifest.context})
    yield from find_status_problems(response, 200)
    if response.as_object().get("key", flag.key) != flag.key:
        yield f"key is {response.as_object()['key']!r} instead of {flag.key!r}"
