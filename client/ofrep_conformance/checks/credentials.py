"""Checks of requests without credentials, or with wrong ones."""

from collections.abc import Iterator

from ofrep_conformance.manifest import CREDENTIAL_HEADERS
from ofrep_conformance.registry import Level, Skip, add_check
from ofrep_conformance.session import FLAGS_PATH, FlagResponse, Session, flag_path
from ofrep_conformance.shapes import find_status_problems

SOURCE = "openapi.yaml, security, 401 and 403"
BODY = b'{"context": {"targetingKey": "user-1"}}'


def send_without(session: Session) -> Iterator[tuple[str, FlagResponse]]:
    if not session.manifest.has_credentials:
        raise Skip("the manifest has no Authorization or X-API-Key header")
    for path in _paths(session):
        yield path, session.send("POST", path, BODY, with_credentials=False)


def _paths(session: Session) -> list[str]:
    return [FLAGS_PATH, flag_path(session.manifest.unknown)]


@add_check("auth.missing", Level.MUST, "A request without credentials gives 401 or 403.", SOURCE)
def check_missing(session: Session) -> Iterator[str]:
    for path, response in send_without(session):
        yield from (f"{path}: {each}" for each in find_status_problems(response, 401, 403))


@add_check("auth.wrong", Level.MUST, "A request with wrong credentials gives 401 or 403.", SOURCE)
def check_wrong(session: Session) -> Iterator[str]:
    if not session.manifest.has_credentials:
        raise Skip("the manifest has no Authorization or X-API-Key header")
    wrong = {
        name: f"{value}-wrong"
        for name, value in session.manifest.headers.items()
        if name.lower() in CREDENTIAL_HEADERS
    }
    for path in _paths(session):
        response = session.send("POST", path, BODY, headers=wrong)
        yield from (f"{path}: {each}" for each in find_status_problems(response, 401, 403))


@add_check("auth.challenge", Level.SHOULD, "A 401 has WWW-Authenticate.", "RFC 9110, 11.6.1")
def check_challenge(session: Session) -> Iterator[str]:
    refusals = [(path, found) for path, found in send_without(session) if found.status == 401]
    if not refusals:
        raise Skip("no 401 was given")
    for path, response in refusals:
        if "www-authenticate" not in response.headers:
            yield f"{path}: WWW-Authenticate is missing"
