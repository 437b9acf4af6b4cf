"""Responses as status, headers and body, built from the state. No I/O."""

import random
from functools import lru_cache, partial
from typing import Any

import orjson

from controlplane.core import problem, protocol
from controlplane.core.degradation_levels import build_document
from controlplane.core.errors import DomainError
from controlplane.dataplane.memory.compression import Header
from controlplane.dataplane.memory.credentials import Headers, not_loaded
from controlplane.dataplane.memory.policies import ServicePolicies
from controlplane.dataplane.memory.served_copy import JSON, Copy, match_copy, parse_tags
from controlplane.dataplane.state import State
from switches.bucketing import BUCKETS
from switches.evaluate import CallDecision, CallQuestion, evaluate

NO_STORE = (b"cache-control", b"no-store")
_draw_bucket = partial(random.randrange, BUCKETS)

Response = tuple[int, list[Header], bytes]


def age_header(seconds: float) -> Header:
    return _age_header(int(seconds * 10))


@lru_cache(maxsize=64)
def _age_header(tenths: int) -> Header:
    return (b"switchgear-age", b"%d.%d" % divmod(tenths, 10))


def current_copy(state: State) -> Copy:
    """Return the current snapshot; raise :class:`Unavailable` if none has been loaded yet."""
    if state.copy is None:
        raise not_loaded("There is no snapshot yet")
    return state.copy


def copy_for_caller(state: State, headers: Headers) -> Copy:
    """Return the snapshot for a caller: the drill copy for an instance in a drill."""
    copy = current_copy(state)
    name = headers.get(b"switchgear-instance")
    if copy.drill_snapshot is None or not copy.drill_snapshot.is_for(name):
        return copy
    return copy.drill_snapshot.copy_for(name, state.wall(), copy)


def answer_snapshot(state: State, headers: Headers, copy: Copy) -> Response:
    """Return 200 with the snapshot, or 304 if the client has this version or a newer one."""
    age = age_header(state.age_seconds())
    known = headers.get(b"if-none-match")
    if known is not None:
        if known == copy.etag:
            return 304, [*copy.validators, age], b""
        if known == copy.gzip_etag:
            return 304, [*copy.gzip_validators, age], b""
        names_it = protocol.matches_etag(known.decode("latin-1"), copy.etag.decode())
        if names_it or match_copy(parse_tags(known), copy):
            return 304, [*copy.validators, age], b""
    return 200, [*copy.validators, *copy.description, age], copy.body


def decide(state: State, headers: Headers, question: CallQuestion) -> tuple[CallDecision, Response]:
    """Decide by the caller's snapshot whether the call described by `question` is allowed.

    Return the decision and the response.
    """
    copy = copy_for_caller(state, headers)
    decided = evaluate(question, copy.entries, now=state.expiry_time(), draw=_draw_bucket)
    content = {
        "allowed": decided.allowed,
        "switch": decided.switch,
        "reason": decided.reason,
        "version": copy.publication.version,
    }
    age = age_header(state.age_seconds())
    return decided, answer_json(200, content, age, NO_STORE)


def service_policies(state: State, service: str) -> ServicePolicies:
    """Return the service's policies; raise :class:`Unavailable` before they are loaded."""
    if state.policies is None:
        raise not_loaded("There are no policies yet")
    return state.policies.document_for(service)


def answer_config(state: State, headers: Headers, policies: ServicePolicies) -> Response:
    """Return 200 with a service's policies and overrides, or 304 if the client has them."""
    age = age_header(state.policies_age_seconds())
    known = headers.get(b"if-none-match")
    if known is not None and policies.is_known(known):
        return 304, [*policies.validators, age], b""
    return 200, [*policies.validators, *policies.description, age], policies.body


def answer_report(state: State, service: str, *, duplicate: bool, dropped: int = 0) -> Response:
    """Return the response to a stored report.

    `dropped` is the number of transitions that were left out because of a limit.
    """
    copy, policies = state.copy, state.policies
    content = {
        "accepted": True,
        "duplicate": duplicate,
        "snapshot_version": None if copy is None else copy.publication.version,
        "config_version": 0 if policies is None else policies.document_for(service).version,
    }
    if dropped:
        content["dropped_transitions"] = dropped
    return answer_json(200, content, NO_STORE)


def answer_ready(state: State) -> Response:
    """Return 200 if a snapshot and tokens are loaded, however old, else 503."""
    copy = state.copy
    if copy is None or state.tokens is None:
        return answer_json(503, {"status": "not_ready"}, NO_STORE, (b"retry-after", b"1"))
    content = {
        "status": "ready",
        "version": copy.publication.version,
        "snapshot_age_seconds": round(state.age_seconds(), 1),
        "source": ("upstream" if state.is_relay else "database")
        if state.heard_database
        else "disk",
        "disk": "healthy" if state.disk is None else "unhealthy",
    }
    return answer_json(200, content, NO_STORE)


def degradation_status(state: State) -> dict[str, Any]:
    """Return the degradation level and its causes, including this process's lost connections."""
    return build_document(*state.assumed_reachable(), state.known_causes())


def answer_error(error: DomainError, path: str = "") -> Response:
    """Return a domain error in the form that clients of the path expect, with its headers."""
    media_type, document = problem.describe_error(error, path)
    kind = (b"content-type", media_type.encode())
    return _encode(error.status, kind, orjson.dumps(document), *error_headers(error))


def error_headers(error: DomainError) -> list[Header]:
    items = problem.problem_headers(error).items()
    return [(name.lower().encode(), value.encode()) for name, value in items]


def answer_redirect(path: str, query: bytes) -> Response:
    location = path.encode() + (b"?" + query if query else b"")
    return 308, [(b"location", location), (b"content-length", b"0")], b""


def answer_page(status: int, html: str, *, retry_after: int | None = None) -> Response:
    headers = [] if retry_after is None else [(b"retry-after", str(retry_after).encode())]
    kind = (b"content-type", b"text/html; charset=utf-8")
    return _encode(status, kind, html.encode(), NO_STORE, *headers)


def parse_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object in a request body; raise :class:`DomainError` if it isn't one."""
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise DomainError(f"The body is not valid JSON in UTF-8: {error}.") from error
    if not isinstance(content, dict):
        raise DomainError('The body must be a JSON object: {"field": value, …}.')
    return content


def answer_json(status: int, content: object, *headers: Header) -> Response:
    return _encode(status, JSON, orjson.dumps(content), *headers)


def _encode(status: int, kind: Header, body: bytes, *headers: Header) -> Response:
    length = (b"content-length", str(len(body)).encode())
    return status, [kind, length, *headers], body
