"""The OpenFeature Remote Evaluation Protocol (OFREP) 0.3: answers, validators, events. No I/O.

A validator is the mark `<epoch>.<version>.<registrations>.<lapsed>`, plus `.<hash>` of the
targeting key if the answer depends on it. It identifies the snapshot, the number of switches ever
registered, and the number of engagements that have expired since. Events carry the mark alone;
clients send it back as `flagConfigEtag` when they refetch.
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any, NamedTuple
from urllib.parse import parse_qs
from uuid import UUID
from weakref import WeakKeyDictionary

import orjson

from controlplane.core import problem, protocol
from controlplane.core.errors import DomainError
from controlplane.dataplane.memory import flags
from controlplane.dataplane.memory.compression import VARY, GzipForm, Header
from controlplane.dataplane.memory.credentials import Headers
from controlplane.dataplane.memory.flags import Flags
from controlplane.dataplane.memory.served_copy import JSON, NO_CACHE, Copy
from controlplane.dataplane.state import State

from .answers import NO_STORE, Answer, age_header, json, served

INACTIVITY_SECONDS = 120
MAX_GZIP_FORMS = 16
"""Most gzip forms cached per version, one per outcome of all ramps; others are sent plain."""
EVENTS_PATH = "/ofrep/v1/events"
EVENT_STREAMS = [
    # Without an origin, so that clients keep the one they use, whatever proxies are in between.
    {
        "type": "sse",
        "endpoint": {"requestUri": EVENTS_PATH},
        "inactivityDelaySec": INACTIVITY_SECONDS,
    }
]

PARSE_ERROR = "PARSE_ERROR"
INVALID_CONTEXT = "INVALID_CONTEXT"
FLAG_NOT_FOUND = "FLAG_NOT_FOUND"
GENERAL = "GENERAL"

_TARGETING_KEY = "targetingKey"
_MARK = re.compile(
    r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
    r"\.([0-9]{1,18})\.(-?[0-9]{1,18})\.([0-9]{1,18})(?:\.([0-9a-f]{16}))?"
)


class BadRequest(DomainError):
    """A body that can't be evaluated; `code` is OpenFeature's error code."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


class Mark(NamedTuple):
    """The version of a flags answer, without the targeting key."""

    epoch: UUID
    version: int
    registrations: int
    lapsed: int

    def __str__(self) -> str:
        return ".".join(map(str, self))


def one(
    state: State,
    _headers: Headers,
    body: bytes,
    key: str,
    record_check: Callable[[str | None], object] = lambda _switch: None,
) -> Answer:
    """Return one flag's evaluation.

    Calls `record_check` with the switch that blocks it, or None. Raises :class:`Unavailable`.
    """
    copy = served(state)
    if key not in state.known and key not in copy.entries:
        return _failed(404, FLAG_NOT_FOUND, f"No switch {key} was ever registered.", key)
    try:
        targeting_key = _targeting_key(body)
    except BadRequest as error:
        return _failed(400, error.code, error.detail, key)
    evaluation = flags.one(copy, key, targeting_key, state.expiry_time())
    record_check(None if evaluation["value"] else evaluation["metadata"]["switch"])
    return json(200, evaluation, *_described(state, copy), NO_STORE)


def bulk(state: State, headers: Headers, body: bytes, query: bytes = b"") -> Answer:
    """Return every known flag, or 304; raise :class:`BadRequest` or :class:`Unavailable`."""
    copy = served(state)
    targeting_key = _targeting_key(body)
    now = state.expiry_time()
    sheet = _flags(state, copy).sheet(now)
    hashed = _hash(targeting_key) if sheet.varies else None
    present = mark(state, now)
    etag = _etag(present, hashed)
    validators = [(b"etag", etag.encode()), NO_CACHE, VARY, *_described(state, copy)]
    if _has(headers, etag, _event_mark(query), present, targeting_key):
        return 304, validators, b""
    metadata = {"version": copy.publication.version}
    content = b'{"flags":[%b],"eventStreams":%b,"metadata":%b}' % (
        sheet.filled(targeting_key),
        orjson.dumps(EVENT_STREAMS),
        orjson.dumps(metadata),
    )
    length = (b"content-length", str(len(content)).encode())
    return 200, [JSON, length, *validators], content


def gzip_form(state: State, body: bytes, content: bytes) -> GzipForm | None:
    """Return the cached gzip form of `content`, the answer of :func:`bulk` to `body`.

    Callers with the same outcome of all ramps share it. None above `MAX_GZIP_FORMS` outcomes.
    """
    sheet = _flags(state, served(state)).latest
    if sheet is None:
        return None
    outcomes = sheet.outcomes(_targeting_key(body))
    forms = sheet.gzip_forms
    if outcomes not in forms and len(forms) < MAX_GZIP_FORMS:
        forms[outcomes] = GzipForm(content)
    return forms.get(outcomes)


def mark(state: State, now: datetime | None = None) -> Mark:
    """Return the version that flags are evaluated at, at `now` or now.

    Raises :class:`Unavailable`.
    """
    copy = served(state)
    lapsed = _flags(state, copy).lapsed(now or state.expiry_time())
    publication = copy.publication
    return Mark(publication.epoch, publication.version, state.registrations, lapsed)


def frame(state: State) -> bytes:
    """Return the event that makes clients refetch; raise :class:`Unavailable`."""
    present = mark(state)
    data = orjson.dumps({"type": "refetchEvaluation", "etag": _etag(present)})
    return b"id: %b\nevent: message\ndata: %b\n\n" % (str(present).encode(), data)


def is_behind(state: State, query: bytes) -> bool:
    """Return True if the caller has seen a change that this process has yet to learn."""
    told = _read(_event_mark(query) or "")
    if told is None:
        return False
    present = mark(state)
    if told.epoch != present.epoch:
        return told.epoch not in state.left_epochs
    return told > present


def refusal(error: DomainError, *headers: Header) -> Answer:
    """Return a domain error in the protocol's format, with its headers."""
    code = error.code if isinstance(error, BadRequest) else GENERAL
    said = problem.problem_headers(error).items()
    called_for = [(name.lower().encode(), value.encode()) for name, value in said]
    return json(error.status, _error(code, error.detail), *called_for, *headers)


def _failed(status: int, code: str, details: str, key: str) -> Answer:
    return json(status, {"key": key, **_error(code, details)}, NO_STORE)


def _error(code: str, details: str) -> dict[str, Any]:
    # Java's provider fails if an error has no metadata.
    return {"errorCode": code, "errorDetails": details, "metadata": {}}


def _described(state: State, copy: Copy) -> tuple[Header, ...]:
    return (
        (b"switchgear-version", str(copy.publication.version).encode()),
        age_header(state.age_seconds()),
    )


_prepared: WeakKeyDictionary[State, tuple[Copy, frozenset[str], Flags]] = WeakKeyDictionary()


def _flags(state: State, copy: Copy) -> Flags:
    found = _prepared.get(state)
    if found is None or found[0] is not copy or found[1] is not state.known:
        found = (copy, state.known, Flags(copy, state.known))
        _prepared[state] = found
    return found[2]


def _targeting_key(body: bytes) -> str | None:
    """Return the targeting key; None without a body, context or key."""
    try:
        document = orjson.loads(body or b"{}")
    except orjson.JSONDecodeError as error:
        raise BadRequest(PARSE_ERROR, f"The body is not valid JSON in UTF-8: {error}.") from error
    if not isinstance(document, dict):
        raise BadRequest(PARSE_ERROR, 'The body must be a JSON object: {"context": {…}}.')
    context: Any = document.get("context")
    if context is None:
        return None
    if not isinstance(context, Mapping):
        raise BadRequest(INVALID_CONTEXT, "The context must be a JSON object.")
    targeting_key = context.get(_TARGETING_KEY)
    if not isinstance(targeting_key, str | None):
        raise BadRequest(INVALID_CONTEXT, f"{_TARGETING_KEY} must be a string.")
    return targeting_key


def _has(
    headers: Headers, etag: str, told: str | None, present: Mark, targeting_key: str | None
) -> bool:
    """Return True if the caller has this answer, or a newer one from another replica.

    A newer one is kept, because a replica that is behind must not restart stopped traffic. If the
    caller was notified of a mark other than the current one, its answer counts as outdated.
    """
    known = headers.get(b"if-none-match")
    if known is None:
        return False
    said = known.decode("latin-1")
    if protocol.matches_etag(said, etag):
        return told in (None, str(present))
    found, theirs = _MARK.search(said), _read(said)
    if found is None or theirs is None:
        return False
    is_newer = theirs.epoch == present.epoch and theirs.version > present.version
    return is_newer and found[5] in (None, _hash(targeting_key))


def _etag(present: Mark, hashed: str | None = None) -> str:
    return f'"{present}"' if hashed is None else f'"{present}.{hashed}"'


def _hash(targeting_key: str | None) -> str:
    """Return a short hash of the targeting key; no key has a hash of its own."""
    seed = b"" if targeting_key is None else b":" + targeting_key.encode()
    return sha256(seed).hexdigest()[:16]


def _event_mark(query: bytes) -> str | None:
    """Return the mark in `flagConfigEtag`, without the quotes of a validator."""
    if not query:
        return None
    given = parse_qs(query.decode("latin-1"), keep_blank_values=True).get("flagConfigEtag")
    return None if given is None else given[-1].removeprefix("W/").strip('"').removesuffix("-gzip")


def _read(said: str) -> Mark | None:
    found = _MARK.search(said)
    if found is None:
        return None
    return Mark(UUID(found[1]), int(found[2]), int(found[3]), int(found[4]))
