"""Checks of HTTP itself: methods, media types, broken and huge bodies, concurrent requests."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from ofrep_conformance.registry import Level, Skip, add_check
from ofrep_conformance.session import FLAGS_PATH, FlagResponse, Session, flag_path
from ofrep_conformance.shapes import find_status_problems

METHODS = "RFC 9110, 9.1 and 15.5.6"
ROBUST = "RFC 9110, 15.5: an invalid request is the client's error"
LARGE_BODY_BYTES = 1024 * 1024
NESTED_LISTS = 50_000
CONCURRENT_REQUESTS = 32
REFUSALS = (400, 413, 414, 415, 422)


def evaluated_path(session: Session) -> str:
    flags = session.manifest.flags
    return flag_path(flags[0].key if flags else session.manifest.unknown)


def find_aftermath(session: Session) -> Iterator[str]:
    """Yield a problem if the server no longer responds."""
    response = session.evaluate_all()
    if response.status >= 500:
        yield f"afterwards a bulk evaluation gives {response.status}"


def find_crashes(response: FlagResponse) -> Iterator[str]:
    if response.status >= 500:
        yield f"status {response.status}"


@add_check("http.get", Level.SHOULD, "GET is refused with 405 and Allow, or with 404.", METHODS)
def check_get(session: Session) -> Iterator[str]:
    for path in (FLAGS_PATH, evaluated_path(session)):
        response = session.send("GET", path)
        yield from (f"{path}: {each}" for each in find_status_problems(response, 404, 405))
        if response.status == 405 and "allow" not in response.headers:
            yield f"{path}: 405 without Allow"


@add_check("http.head", Level.SHOULD, "HEAD is answered, without content or 5xx.", METHODS)
def check_head(session: Session) -> Iterator[str]:
    for path in (FLAGS_PATH, evaluated_path(session)):
        yield from (f"{path}: {each}" for each in find_crashes(session.send("HEAD", path)))


@add_check("http.unknown-method", Level.SHOULD, "An unknown method gives 4xx or 501.", METHODS)
def check_unknown_method(session: Session) -> Iterator[str]:
    response = session.send("CONFORM", FLAGS_PATH)
    if not 400 <= response.status < 500 and response.status != 501:
        yield f"status {response.status}"


@add_check(
    "http.media-type-parameters",
    Level.MUST,
    "application/json with a charset parameter is accepted.",
    "RFC 9110, 8.3.1",
)
def check_media_type_parameters(session: Session) -> Iterator[str]:
    headers = {"Content-Type": "application/json; charset=utf-8"}
    response = session.post(FLAGS_PATH, {"context": session.manifest.context}, headers=headers)
    yield from find_status_problems(response, 200)


@add_check("http.invalid-utf8", Level.MUST, "A body that is not UTF-8 is refused with 4xx.", ROBUST)
def check_invalid_utf8(session: Session) -> Iterator[str]:
    body = b'{"context": {"targetingKey": "\xff\xfe"}}'
    # A server may look for an unknown flag before it reads the body.
    known = [flag_path(flag.key) for flag in session.manifest.flags[:1]]
    for path in (FLAGS_PATH, *known):
        response = session.send("POST", path, body)
        yield from (f"{path}: {each}" for each in find_status_problems(response, *REFUSALS))


@add_check(
    "http.large-body", Level.MUST, "A body of 1 MiB gives no 5xx; requests still work.", ROBUST
)
def check_large_body(session: Session) -> Iterator[str]:
    context = {**session.manifest.context, "large": "x" * LARGE_BODY_BYTES}
    yield from find_crashes(session.post(evaluated_path(session), {"context": context}))
    yield from find_aftermath(session)


@add_check(
    "http.deep-body", Level.MUST, "Deeply nested JSON gives no 5xx; requests still work.", ROBUST
)
def check_deep_body(session: Session) -> Iterator[str]:
    nested = b"[" * NESTED_LISTS + b"]" * NESTED_LISTS
    body = b'{"context": {"targetingKey": "user-1", "deep": ' + nested + b"}}"
    yield from find_crashes(session.send("POST", evaluated_path(session), body))
    yield from find_aftermath(session)


@add_check("http.null-context", Level.MUST, "A null context gives no 5xx.", ROBUST)
def check_null_context(session: Session) -> Iterator[str]:
    for path in (FLAGS_PATH, evaluated_path(session)):
        response = session.send("POST", path, json.dumps({"context": None}).encode())
        yield from (f"{path}: {each}" for each in find_crashes(response))


@add_check(
    "http.unfinished-body",
    Level.MUST,
    "A request whose body never arrives doesn't block others.",
    "a server has more than one client",
)
def check_unfinished_body(session: Session) -> Iterator[str]:
    with session.hold_unfinished_request(FLAGS_PATH):
        yield from find_status_problems(session.evaluate_all(), 200)


@add_check(
    "http.concurrent",
    Level.MUST,
    f"{CONCURRENT_REQUESTS} concurrent requests give the same response, or 429.",
    "a server has more than one client",
)
def check_concurrent(session: Session) -> Iterator[str]:
    responses = [each for each in send_concurrently(session) if each.status != 429]
    for response in responses:
        yield from find_crashes(response)
    evaluations = {
        json.dumps([found.get("value"), found.get("variant"), found.get("errorCode")])
        for found in map(FlagResponse.as_object, responses)
    }
    if len(evaluations) > 1:
        yield f"{len(evaluations)} different evaluations of one flag"


@add_check(
    "http.retry-after",
    Level.MUST,
    "A 429 has Retry-After.",
    "openapi.yaml, 429 of POST /ofrep/v1/evaluate/flags/{key}",
)
def check_retry_after(session: Session) -> Iterator[str]:
    refusals = [each for each in send_concurrently(session) if each.status == 429]
    if not refusals:
        raise Skip(f"{CONCURRENT_REQUESTS} concurrent requests gave no 429")
    if any("retry-after" not in response.headers for response in refusals):
        yield "Retry-After is missing"


def send_concurrently(session: Session) -> list[FlagResponse]:
    path, body = evaluated_path(session), {"context": session.manifest.context}
    with ThreadPoolExecutor(CONCURRENT_REQUESTS) as pool:
        futures = [pool.submit(session.post, path, body) for _ in range(CONCURRENT_REQUESTS)]
        return [future.result() for future in futures]
