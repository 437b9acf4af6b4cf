"""Checks of `GET /ofrep/v1/configuration`, an extension that servers may leave out."""

from collections.abc import Iterator

from ofrep_conformance.registry import Level, Skip, add_check
from ofrep_conformance.session import CONFIGURATION_PATH, FlagResponse, Session
from ofrep_conformance.shapes import find_json_problems, find_status_problems, name_type

SOURCE = "openapi.yaml, GET /ofrep/v1/configuration"
TYPES = frozenset({"int", "float", "string", "boolean", "object"})


def fetch_configuration(session: Session) -> FlagResponse:
    response = session.send("GET", CONFIGURATION_PATH)
    if response.status in (404, 405, 501):
        raise Skip("there is no configuration endpoint")
    return response


@add_check(
    "configuration.shape", Level.MUST, "The configuration has the documented fields.", SOURCE
)
def check_shape(session: Session) -> Iterator[str]:
    response = fetch_configuration(session)
    yield from find_status_problems(response, 200)
    yield from find_json_problems(response)
    document = response.as_object()
    if not isinstance(document.get("name", ""), str):
        yield f"name is {name_type(document['name'])} instead of a string"
    capabilities = document.get("capabilities", {})
    if not isinstance(capabilities, dict):
        yield f"capabilities is {name_type(capabilities)} instead of an object"
        return
    evaluation = capabilities.get("flagEvaluation")
    listed = evaluation.get("supportedTypes") if isinstance(evaluation, dict) else None
    for name in listed if isinstance(listed, list) else ():
        if not isinstance(name, str) or name not in TYPES:
            yield f"supportedTypes has {name!r}"


@add_check("configuration.etag", Level.SHOULD, "Its ETag in If-None-Match gives 304.", SOURCE)
def check_etag(session: Session) -> Iterator[str]:
    etag = fetch_configuration(session).headers.get("etag")
    if not etag:
        yield "ETag is missing"
        return
    response = session.send("GET", CONFIGURATION_PATH, headers={"If-None-Match": etag})
    yield from find_status_problems(response, 304)
