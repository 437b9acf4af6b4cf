"""Checks of `ETag`, `If-None-Match` and 304 on bulk evaluations."""

import contextlib
import json
import re
from collections.abc import Iterator

from ofrep_conformance.registry import Level, Skip, add_check
from ofrep_conformance.session import FLAGS_PATH, JSON_TYPE, Session
from ofrep_conformance.shapes import find_status_problems

SOURCE = "openapi.yaml, 304 of POST /ofrep/v1/evaluate/flags"
COMPARISON = "RFC 9110, 13.1.2"
ENTITY_TAG = re.compile(r'(W/)?"[\x21\x23-\x7e\x80-\xff]*"')
OTHER = '"ofrep-conformance-other"'


def fetch_etag(session: Session) -> str:
    """Return the ETag of a bulk evaluation; skip the check if there is none."""
    etag = session.evaluate_all().headers.get("etag", "")
    if not etag:
        raise Skip("bulk evaluations have no ETag")
    return etag


def fetch_opaque(session: Session) -> str:
    return fetch_etag(session).removeprefix("W/")


@add_check("etag.present", Level.SHOULD, "A bulk evaluation has an ETag.", SOURCE)
def check_present(session: Session) -> Iterator[str]:
    if not session.evaluate_all().headers.get("etag"):
        yield "ETag is missing: clients that poll fetch everything each time"


@add_check("etag.syntax", Level.MUST, "An ETag is a quoted string.", "RFC 9110, 8.8.3")
def check_syntax(session: Session) -> Iterator[str]:
    etag = fetch_etag(session)
    if not ENTITY_TAG.fullmatch(etag):
        yield f"ETag is {etag}"


@add_check("etag.stable", Level.SHOULD, "The ETag stays the same while nothing changes.", SOURCE)
def check_stable(session: Session) -> Iterator[str]:
    first, second = fetch_etag(session), fetch_etag(session)
    if first != second:
        yield f"{first}, then {second}"


@add_check("etag.not-modified", Level.MUST, "If-None-Match with the ETag gives 304.", SOURCE)
def check_not_modified(session: Session) -> Iterator[str]:
    response = session.evaluate_all(if_none_match=fetch_etag(session))
    yield from find_status_problems(response, 304)


@add_check("etag.empty-304", Level.MUST, "A 304 has no content.", "RFC 9110, 15.4.5")
def check_empty_304(session: Session) -> Iterator[str]:
    received = receive_bytes(session, fetch_etag(session))
    head, _, content = received.partition(b"\r\n\r\n")
    if b" 304" not in head.partition(b"\r\n")[0]:
        raise Skip("no 304 was given")
    if content:
        yield f"{len(content)} bytes follow the head of a 304; the next response is unreadable"


def receive_bytes(session: Session, etag: str) -> bytes:
    """Return everything that the server sends; HTTP clients never read the content of a 304."""
    body = json.dumps({"context": session.manifest.context}).encode()
    headers = {"If-None-Match": etag, "Content-Type": JSON_TYPE, "Connection": "close"}
    received = b""
    with session.connect() as connection:
        connection.request("POST", FLAGS_PATH, body, {**session.make_headers(), **headers})
        connection.sock.settimeout(min(2.0, session.manifest.timeout))
        with contextlib.suppress(OSError):
            while chunk := connection.sock.recv(65536):
                received += chunk
    return received


@add_check("etag.on-304", Level.SHOULD, "A 304 repeats the ETag.", "RFC 9110, 15.4.5")
def check_on_304(session: Session) -> Iterator[str]:
    etag = fetch_etag(session)
    response = session.evaluate_all(if_none_match=etag)
    if response.status != 304:
        raise Skip("no 304 was given")
    found = response.headers.get("etag", "")
    if found.removeprefix("W/") != etag.removeprefix("W/"):
        yield f"ETag is {found or 'missing'} instead of {etag}"


@add_check("etag.other", Level.MUST, "Another tag in If-None-Match gives 200.", COMPARISON)
def check_other(session: Session) -> Iterator[str]:
    fetch_etag(session)
    yield from find_status_problems(session.evaluate_all(if_none_match=OTHER), 200)


@add_check("etag.weak", Level.MUST, "The weak form of the tag gives 304, too.", COMPARISON)
def check_weak(session: Session) -> Iterator[str]:
    tag = f"W/{fetch_opaque(session)}"
    yield from find_status_problems(session.evaluate_all(if_none_match=tag), 304)


@add_check("etag.list", Level.MUST, "A list that has the tag gives 304.", COMPARISON)
def check_list(session: Session) -> Iterator[str]:
    tags = f"{OTHER}, {fetch_opaque(session)}"
    yield from find_status_problems(session.evaluate_all(if_none_match=tags), 304)


@add_check("etag.star", Level.SHOULD, "If-None-Match: * gives 304.", COMPARISON)
def check_star(session: Session) -> Iterator[str]:
    fetch_etag(session)
    yield from find_status_problems(session.evaluate_all(if_none_match="*"), 304)


@add_check(
    "etag.context",
    Level.MUST,
    "The ETag of one context is not accepted for a context with other values.",
    SOURCE,
)
def check_context(session: Session) -> Iterator[str]:
    other = session.manifest.other_context
    first, second = session.evaluate_all(), session.evaluate_all(other)
    etag = first.headers.get("etag", "")
    if not etag:
        raise Skip("bulk evaluations have no ETag")
    if first.as_object().get("flags") == second.as_object().get("flags"):
        raise Skip("context and other_context of the manifest give the same evaluations")
    if etag == second.headers.get("etag"):
        yield "two contexts with different values have the same ETag"
    yield from find_status_problems(session.evaluate_all(other, if_none_match=etag), 200)
