"""What is said: from the state and a request's parts to status, headers and body. No I/O."""

import random
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import orjson

from controlplane.core import problem, wire
from controlplane.core.errors import Broken, DomainError, MethodNotAllowed, Unavailable
from controlplane.dataplane.credentials import Headers
from controlplane.dataplane.served_copy import JSON, Header
from controlplane.dataplane.state import State
from switches.bucketing import BUCKETS
from switches.evaluate import evaluate, read_question

PROBLEM_JSON = (b"content-type", problem.MEDIA_TYPE.encode())
NO_STORE = (b"cache-control", b"no-store")

Answer = tuple[int, list[Header], bytes]
"""Status, headers but for those that every response gets, and body."""


def snapshot(state: State, headers: Headers, _body: bytes) -> Answer:
    """200 with the document, or 304 if the caller has it; raises :class:`Unavailable`."""
    copy = state.copy
    if copy is None:
        raise _nothing_yet()
    age = (b"switchgear-age", b"%.1f" % state.age_seconds())
    known = headers.get(b"if-none-match")
    if known is not None and (known == copy.etag or _names(known, copy.etag)):
        return 304, [*copy.validators, age], b""
    return 200, [*copy.validators, *copy.description, age], copy.body


def check(state: State, _headers: Headers, body: bytes) -> Answer:
    """The decision for the question in `body`; raises :class:`DomainError` for a bad one."""
    copy = state.copy
    if copy is None:
        raise _nothing_yet()
    question = read_question(_object(body))
    decision = evaluate(question, copy.entries, now=datetime.now(UTC), draw=_draw)
    content = {
        "allowed": decision.allowed,
        "switch": decision.switch,
        "reason": decision.reason,
        "version": copy.publication.version,
    }
    return _json(200, content, (b"switchgear-age", b"%.1f" % state.age_seconds()), NO_STORE)


def live(_state: State, _headers: Headers, _body: bytes) -> Answer:
    """The event loop turns; nothing else is asked."""
    return _json(200, {"status": "live"}, NO_STORE)


def ready(state: State, _headers: Headers, _body: bytes) -> Answer:
    """Ready while there is something to serve, however old it is."""
    copy = state.copy
    if copy is None or state.tokens is None:
        return _json(503, {"status": "not_ready"}, NO_STORE, (b"retry-after", b"1"))
    content = {
        "status": "ready",
        "version": copy.publication.version,
        "snapshot_age_seconds": round(state.age_seconds(), 1),
    }
    return _json(200, content, NO_STORE)


def refusal(error: DomainError, *headers: Header) -> Answer:
    """A domain error, with the headers its kind calls for."""
    said = problem.headers(error).items()
    called_for = [(name.lower().encode(), value.encode()) for name, value in said]
    return _written(error.status, PROBLEM_JSON, problem.document(error), *called_for, *headers)


def moved(path: str, query: bytes) -> Answer:
    """The one form of this path, which keeps method and query."""
    location = path.encode() + (b"?" + query if query else b"")
    return 308, [(b"location", location), (b"content-length", b"0")], b""


def wrong_method(method: str, allowed: Iterable[str]) -> Answer:
    methods = ", ".join(allowed)
    error = MethodNotAllowed(f"{method} is not possible here; use {methods}.")
    return refusal(error, (b"allow", methods.encode()))


def broken() -> Answer:
    """For what we did not foresee; the server logs the cause."""
    return refusal(Broken("The request failed on our side and was logged; try again."))


def page(status: int, html: str, *, retry_after: int) -> Answer:
    """A whole page for a person, when what would have made it is away."""
    body = html.encode()
    headers = [
        (b"content-type", b"text/html; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"retry-after", str(retry_after).encode()),
        NO_STORE,
    ]
    return status, headers, body


def _nothing_yet() -> Unavailable:
    return Unavailable(
        "There is no snapshot yet: the database has not answered since the start.", retry_after=1
    )


def _names(if_none_match: bytes, etag: bytes) -> bool:
    return wire.names(if_none_match.decode("latin-1"), etag.decode())


def _object(body: bytes) -> dict[str, Any]:
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise DomainError(f"The body is not valid JSON in UTF-8: {error}.") from error
    if not isinstance(content, dict):
        raise DomainError('The body must be a JSON object: {"field": value, …}.')
    return content


def _draw() -> int:
    return random.randrange(BUCKETS)  # noqa: S311


def _json(status: int, content: object, *headers: Header) -> Answer:
    return _written(status, JSON, content, *headers)


def _written(status: int, kind: Header, content: object, *headers: Header) -> Answer:
    body = orjson.dumps(content)
    length = (b"content-length", str(len(body)).encode())
    return status, [kind, length, *headers], body
