"""OpenFeature Remote Evaluation Protocol (OFREP) 0.3: responses, validators and events.

A validator is `<epoch>.<version>.<registrations>.<lapsed>`, plus `-<orders>` if there are emergency
orders, plus `.<hash>` of the targeting key if the response depends on the key. `registrations` is
the number of switches ever registered, and `lapsed` the number of engagements that have expired
since the snapshot was published. Events contain the validator without the hash; clients send it
back as `flagConfigEtag`.

OFREP clients know nothing of emergency orders: they get the switches as this data plane serves
them, without the union of what several planes told them.
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

from controlplane.core import protocol
from controlplane.core.errors import DomainError
from controlplane.dataplane.memory import flags
from controlplane.dataplane.memory.compression import VARY, GzipForm, Header
from controlplane.dataplane.memory.credentials import Headers
from controlplane.dataplane.memory.flags import Flags
from controlplane.dataplane.memory.served_copy import JSON, NO_CACHE, Copy
from controlplane.dataplane.state import State

from .responses import NO_STORE, Response, age_header, answer_json, current_copy, error_headers

INACTIVITY_SECONDS = 120
MAX_GZIP_FORMS = 16
"""Most gzip forms per snapshot, one per combination of variable flags."""
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
    r"\.([0-9]{1,18})\.(-?[0-9]{1,18})\.([0-9]{1,18})(?:-([0-9a-f]{8}))?(?:\.([0-9a-f]{16}))?"
)


class BadRequest(DomainError):
    """A request body that can't be evaluated; `code` is an OpenFeature error code."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


class Mark(NamedTuple):
    """The validator of a flags response, without the hash of the targeting key.

    `orders` identifies the emergency orders, "" for none. It says nothing of their age.
    """

    epoch: UUID
    version: int
    registrations: int
    lapsed: int
    orders: str

    def __str__(self) -> str:
        mark = f"{self.epoch}.{self.version}.{self.registrations}.{self.lapsed}"
        return f"{mark}-{self.orders}" if self.orders else mark


def answer_flag(
    state: State,
    body: bytes,
    key: str,
    record_check: Callable[[str | None], object] = lambda _switch: None,
) -> Response:
    """Return the evaluation of one flag; raise :class:`Unavailable` without a snapshot.

    `record_check` is called with the switch that blocks the flag, or with None.
    """
    copy = current_copy(state)
    try:
        targeting_key = _targeting_key(body)
    except BadRequest as error:
        return answer_json(400, _error_body(error.code, error.detail, key=key), NO_STORE)
    if key not in state.known and key not in copy.entries:
        unknown = _error_body(FLAG_NOT_FOUND, f"The switch {key} is not registered.", key=key)
        return answer_json(404, unknown, NO_STORE)
    evaluation = flags.evaluate_flag(copy, key, targeting_key, state.expiry_time())
    record_check(None if evaluation["value"] else evaluation["metadata"]["switch"])
    return answer_json(200, evaluation, *_version_headers(state, copy), NO_STORE)


def answer_flags(state: State, headers: Headers, body: bytes, query: bytes = b"") -> Response:
    """Return every known flag, or 304; raise :class:`BadRequest` or :class:`Unavailable`."""
    copy = current_copy(state)
    targeting_key = _targeting_key(body)
    now = state.expiry_time()
    sheet = _cached_flags(state, copy).sheet(now)
    hashed = _hash_key(targeting_key) if sheet.gaps else None
    present = current_mark(state, now)
    etag = _make_etag(present, hashed)
    validators = [(b"etag", etag.encode()), NO_CACHE, VARY, *_version_headers(state, copy)]
    if _is_current(headers, etag, _event_mark(query), present, targeting_key):
        return 304, validators, b""
    metadata = {"version": copy.publication.version}
    content = b'{"flags":[%b],"eventStreams":%b,"metadata":%b}' % (
        sheet.fill(targeting_key),
        orjson.dumps(EVENT_STREAMS),
        orjson.dumps(metadata),
    )
    length = (b"content-length", str(len(content)).encode())
    return 200, [JSON, length, *validators], content


def gzip_form(state: State, body: bytes, content: bytes) -> GzipForm | None:
    """Return the gzip form of `content`, the flags response to the request body `body`.

    Responses with the same values of all variable flags share a form. Return None if there is no
    such form yet and `MAX_GZIP_FORMS` exist.
    """
    sheet = _cached_flags(state, current_copy(state)).latest
    if sheet is None:
        return None
    outcomes = sheet.outcomes(_targeting_key(body))
    forms = sheet.gzip_forms
    if outcomes not in forms and len(forms) < MAX_GZIP_FORMS:
        forms[outcomes] = GzipForm(content)
    return forms.get(outcomes)


def current_mark(state: State, now: datetime | None = None) -> Mark:
    """Return the validator of the flags at `now`; raise :class:`Unavailable` without a snapshot."""
    copy = current_copy(state)
    lapsed = _cached_flags(state, copy).count_expired(now or state.expiry_time())
    publication = copy.publication
    return Mark(
        publication.epoch, publication.version, state.registrations, lapsed, copy.orders_hash
    )


def refetch_event(state: State) -> bytes:
    present = current_mark(state)
    data = orjson.dumps({"type": "refetchEvaluation", "etag": _make_etag(present)})
    return b"id: %b\nevent: message\ndata: %b\n\n" % (str(present).encode(), data)


def is_behind(state: State, query: bytes) -> bool:
    """Return True if `flagConfigEtag` names something newer than this process serves.

    That is a newer version, or emergency orders that this process never had in this version.
    """
    seen = _parse_mark(_event_mark(query) or "")
    if seen is None:
        return False
    present = current_mark(state)
    if seen.epoch != present.epoch:
        return seen.epoch not in state.left_epochs
    if seen.version != present.version:
        return seen.version > present.version
    if seen.orders and seen.orders not in state.served_orders:
        return True
    if seen.registrations != present.registrations:
        return seen.registrations > present.registrations
    return seen.orders == present.orders and seen.lapsed > present.lapsed


def answer_error(error: DomainError) -> Response:
    """Return a domain error in the format of the protocol, with the error's headers."""
    code = error.code if isinstance(error, BadRequest) else GENERAL
    return answer_json(error.status, _error_body(code, error.detail), *error_headers(error))


def _error_body(code: str, details: str, **key: str) -> dict[str, Any]:
    # Java's provider fails if an error has no metadata.
    return {**key, "errorCode": code, "errorDetails": details, "metadata": {}}


def _version_headers(state: State, copy: Copy) -> tuple[Header, ...]:
    return (
        (b"switchgear-version", str(copy.publication.version).encode()),
        age_header(state.age_seconds()),
    )


_prepared: WeakKeyDictionary[State, tuple[Copy, frozenset[str], Flags]] = WeakKeyDictionary()


def _cached_flags(state: State, copy: Copy) -> Flags:
    match = _prepared.get(state)
    if match is None or match[0] is not copy or match[1] is not state.known:
        match = (copy, state.known, Flags(copy, state.known))
        _prepared[state] = match
    return match[2]


def _targeting_key(body: bytes) -> str | None:
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


def _is_current(
    headers: Headers, etag: str, seen_mark: str | None, present: Mark, targeting_key: str | None
) -> bool:
    """Return True if the client has this response, or one of another replica that it must keep.

    It keeps a newer version, because an outdated replica must not restart stopped traffic, and of
    the same version one with emergency orders if this process has none, because orders end only in
    a newer version. If the client has seen an event with another version (`seen_mark`), its
    response counts as outdated.
    """
    known = headers.get(b"if-none-match")
    if known is None:
        return False
    text = known.decode("latin-1")
    if protocol.matches_etag(text, etag):
        return seen_mark in (None, str(present))
    match, theirs = _MARK.search(text), _parse_mark(text)
    if match is None or theirs is None or theirs.epoch != present.epoch:
        return False
    has_unknown_orders = bool(theirs.orders) and not present.orders
    must_keep = theirs.version > present.version or (
        theirs.version == present.version and has_unknown_orders
    )
    return must_keep and match[6] in (None, _hash_key(targeting_key))


def _make_etag(present: Mark, hashed: str | None = None) -> str:
    return f'"{present}"' if hashed is None else f'"{present}.{hashed}"'


def _hash_key(targeting_key: str | None) -> str:
    seed = b"" if targeting_key is None else b":" + targeting_key.encode()
    return sha256(seed).hexdigest()[:16]


def _event_mark(query: bytes) -> str | None:
    if not query:
        return None
    values = parse_qs(query.decode("latin-1"), keep_blank_values=True).get("flagConfigEtag")
    if values is None:
        return None
    return values[-1].removeprefix("W/").strip('"').removesuffix("-gzip")


def _parse_mark(text: str) -> Mark | None:
    match = _MARK.search(text)
    if match is None:
        return None
    return Mark(UUID(match[1]), int(match[2]), int(match[3]), int(match[4]), match[5] or "")
