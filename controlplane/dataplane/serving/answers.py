"""Answers: status, headers and body from the state and a request's parts. No I/O."""

import random
from functools import lru_cache
from typing import Any

import orjson

from controlplane.core import problem, protocol
from controlplane.core.degradation_levels import build_document
from controlplane.core.errors import DomainError, Unavailable
from controlplane.dataplane.memory import version_marks
from controlplane.dataplane.memory.compression import Header
from controlplane.dataplane.memory.credentials import Headers
from controlplane.dataplane.memory.policies import ServicePolicies
from controlplane.dataplane.memory.served_copy import JSON, Copy
from controlplane.dataplane.state import State
from switches.bucketing import BUCKETS
from switches.evaluate import CallDecision, CallQuestion, evaluate

PROBLEM_JSON = (b"content-type", problem.MEDIA_TYPE.encode())
NO_STORE = (b"cache-control", b"no-store")

Answer = tuple[int, list[Header], bytes]
"""Status, headers except those common to all responses, and body."""


def age_header(seconds: float) -> Header:
    """Return `Switchgear-Age`, in seconds with one decimal, rounded down."""
    return _age_header(int(seconds * 10))


@lru_cache(maxsize=64)
def _age_header(tenths: int) -> Header:
    return (b"switchgear-age", b"%d.%d" % divmod(tenths, 10))


def served(state: State) -> Copy:
    """Return the current copy; raise :class:`Unavailable` before there is one."""
    if state.copy is None:
        raise Unavailable(
            "There is no snapshot yet: the database has not answered since the start.",
            retry_after=1,
        )
    return state.copy


def served_to(state: State, headers: Headers) -> Copy:
    """Return the current copy for this caller: marked instances get the drill copy."""
    copy = served(state)
    name = headers.get(b"switchgear-instance")
    if copy.drill_snapshot is None or not copy.drill_snapshot.is_for(name):
        return copy
    return copy.drill_snapshot.copy_for(name, state.wall(), copy)


def snapshot(state: State, headers: Headers, copy: Copy) -> Answer:
    """Return 200 with the document `copy`, or 304 if the caller has it in either encoding.

    A caller that has a newer version of the same epoch keeps it: this replica is behind.
    """
    age = age_header(state.age_seconds())
    known = headers.get(b"if-none-match")
    if known is not None:
        if known == copy.etag:
            return 304, [*copy.validators, age], b""
        if known == copy.gzip_etag:
            return 304, [*copy.gzip_validators, age], b""
        if _has(known, copy):
            return 304, [*copy.validators, age], b""
    return 200, [*copy.validators, *copy.description, age], copy.body


def decision(state: State, headers: Headers, question: CallQuestion) -> tuple[CallDecision, Answer]:
    """Return the decision on `question`, by the caller's current copy, and the answer."""
    copy = served_to(state, headers)
    decided = evaluate(question, copy.entries, now=state.expiry_time(), draw=_draw)
    content = {
        "allowed": decided.allowed,
        "switch": decided.switch,
        "reason": decided.reason,
        "version": copy.publication.version,
    }
    age = age_header(state.age_seconds())
    return decided, json(200, content, age, NO_STORE)


def policies(state: State, service: str) -> ServicePolicies:
    """Return the service's policies; raise :class:`Unavailable` before they are known."""
    if state.policies is None:
        raise Unavailable(
            "There are no policies yet: the database has not answered since the start.",
            retry_after=1,
        )
    return state.policies.document_for(service)


def config(state: State, headers: Headers, told: ServicePolicies) -> Answer:
    """Return 200 with the policies and overrides `told`, or 304 if the caller has them."""
    age = age_header(state.policies_age_seconds())
    known = headers.get(b"if-none-match")
    if known is not None and told.is_known(known):
        return 304, [*told.validators, age], b""
    return 200, [*told.validators, *told.description, age], told.body


def report(state: State, service: str, *, duplicate: bool, dropped: int = 0) -> Answer:
    """Return the answer to an accepted report, with the number of dropped transitions."""
    copy, told = state.copy, state.policies
    content = {
        "accepted": True,
        "duplicate": duplicate,
        "snapshot_version": None if copy is None else copy.publication.version,
        "config_version": 0 if told is None else told.document_for(service).version,
    }
    if dropped:
        content["dropped_transitions"] = dropped
    return json(200, content, NO_STORE)


def live() -> Answer:
    """Return 200: the event loop runs; nothing else is checked."""
    return json(200, {"status": "live"}, NO_STORE)


def ready(state: State) -> Answer:
    """Return 200 if there is something to serve, however old, else 503."""
    copy = state.copy
    if copy is None or state.tokens is None:
        return json(503, {"status": "not_ready"}, NO_STORE, (b"retry-after", b"1"))
    content = {
        "status": "ready",
        "version": copy.publication.version,
        "snapshot_age_seconds": round(state.age_seconds(), 1),
        "source": "database" if state.heard_database else "disk",
        "disk": "healthy" if state.disk is None else "unhealthy",
    }
    return json(200, content, NO_STORE)


def present_picture(state: State) -> dict[str, Any]:
    """Return the degradation level and causes, including this process's own stores."""
    return build_document(state.database_reachable, state.redis_reachable, state.known_causes())


def degradation(state: State) -> Answer:
    """Return the degradation level of the installation."""
    return json(200, present_picture(state), NO_STORE)


def refusal(error: DomainError, *headers: Header) -> Answer:
    """Return a domain error with its headers."""
    said = problem.problem_headers(error).items()
    called_for = [(name.lower().encode(), value.encode()) for name, value in said]
    return written(
        error.status, PROBLEM_JSON, problem.problem_document(error), *called_for, *headers
    )


def moved(path: str, query: bytes) -> Answer:
    """Return a redirect to the canonical form of the path, keeping method and query."""
    location = path.encode() + (b"?" + query if query else b"")
    return 308, [(b"location", location), (b"content-length", b"0")], b""


def page(status: int, html: str, *, retry_after: int) -> Answer:
    """Return an HTML page, for when the application that would render it is unavailable."""
    body = html.encode()
    headers = [
        (b"content-type", b"text/html; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"retry-after", str(retry_after).encode()),
        NO_STORE,
    ]
    return status, headers, body


def _has(if_none_match: bytes, copy: Copy) -> bool:
    names_it = protocol.matches_etag(if_none_match.decode("latin-1"), copy.etag.decode())
    return names_it or version_marks.name(version_marks.parse_tags(if_none_match), copy)


def object_in(body: bytes) -> dict[str, Any]:
    """Return the JSON object in a body; raise :class:`DomainError`."""
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise DomainError(f"The body is not valid JSON in UTF-8: {error}.") from error
    if not isinstance(content, dict):
        raise DomainError('The body must be a JSON object: {"field": value, …}.')
    return content


def _draw() -> int:
    return random.randrange(BUCKETS)  # noqa: S311


def json(status: int, content: object, *headers: Header) -> Answer:
    return written(status, JSON, content, *headers)


def written(status: int, kind: Header, content: object, *headers: Header) -> Answer:
    body = orjson.dumps(content)
    length = (b"content-length", str(len(body)).encode())
    return status, [kind, length, *headers], body
