"""Idempotency keys: stores the first response to a request and returns it for repeated ones.

A key's row is inserted before the requested change, in the same transaction. A concurrent duplicate
waits on the unique index; then it finds the response, or makes the change if the first request
failed.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from controlplane.core import canonical
from controlplane.core.actors import Actor
from controlplane.core.errors import InvalidInput, KeyReused
from controlplane.core.idempotency.models import IdempotencyKey
from controlplane.core.idempotency.retention_rules import LIFETIME
from controlplane.core.sql import fetch_all

HEADER = "Idempotency-Key"
USABLE_KEY = re.compile(r"[!-~]{1,200}")
MAX_PATH_LENGTH = 400

# Rows older than 24 hours may not be purged yet; they count as absent.
CLAIM = """
INSERT INTO core_idempotencykey AS present
    (actor, method, path, key, request_digest, status, body, created_at)
VALUES (%(actor)s, %(method)s, %(path)s, %(key)s, %(digest)s, NULL, '', %(now)s)
ON CONFLICT (actor, method, path, key) DO UPDATE
    SET request_digest = EXCLUDED.request_digest, status = NULL, body = '', created_at = %(now)s
    WHERE present.created_at <= %(expired)s
RETURNING id
"""


@dataclass(frozen=True)
class StoredResponse:
    """The HTTP status and JSON text of a response."""

    status: int
    body: str


@dataclass(frozen=True)
class RequestKey:
    """An idempotency key: the columns that identify it, and the digest of the request's content."""

    columns: Mapping[str, str]
    digest: str


@dataclass(frozen=True)
class KeyClaim:
    """An idempotency key that a request claimed; `earlier` is an earlier request's response."""

    row_id: int
    earlier: StoredResponse | None = None


def build_key(
    actor: Actor, method: str, path: str, key: str, content: Mapping[str, Any]
) -> RequestKey:
    """Return the idempotency key of a request. Raise :class:`InvalidInput` if it is unusable."""
    if not USABLE_KEY.fullmatch(key):
        raise InvalidInput({HEADER: ["Must be 1 to 200 visible ASCII characters, without spaces."]})
    path = path.rstrip("/")
    if len(path) > MAX_PATH_LENGTH or not path.isascii() or not path.isprintable():
        path = "sha256:" + hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()
    columns = {"actor": actor.identity, "method": method, "path": path, "key": key}
    return RequestKey(columns, canonical.digest(content))


def claim_key(key: RequestKey, now: datetime) -> KeyClaim:
    """Claim the key in the transaction of the change; wait for a concurrent request with the key.

    Raises :class:`KeyReused` if the key was used with another body or query.
    """
    parameters = {**key.columns, "digest": key.digest, "now": now, "expired": now - LIFETIME}
    if claimed := fetch_all(CLAIM, parameters):
        return KeyClaim(row_id=claimed[0][0])
    present = IdempotencyKey.objects.get(**key.columns)
    return KeyClaim(present.pk, _load_response(present, key))


def find_response(key: RequestKey, now: datetime) -> StoredResponse | None:
    """Return the response stored under this key, if any, without claiming the key or waiting.

    Raises like :func:`claim_key`.
    """
    rows = IdempotencyKey.objects.filter(created_at__gt=now - LIFETIME, **key.columns)
    present = rows.exclude(status=None).first()
    return None if present is None else _load_response(present, key)


def _load_response(present: IdempotencyKey, key: RequestKey) -> StoredResponse:
    if present.request_digest != key.digest:
        raise KeyReused(
            "This Idempotency-Key was used with another body or query. "
            "Use a new key for a new request."
        )
    return StoredResponse(present.status or 0, present.body)


def store_response(claimed: KeyClaim, answer: StoredResponse) -> None:
    """Store the first response, in the transaction of the change."""
    IdempotencyKey.objects.filter(pk=claimed.row_id).update(status=answer.status, body=answer.body)
