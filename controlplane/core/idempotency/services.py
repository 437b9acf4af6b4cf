"""Repeats of a request get the stored first response, for 24 hours.

The row is written before the effect, in its transaction: a concurrent duplicate waits on the unique
index, and then finds the response or, if the first failed, does the work itself.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from controlplane.core import canonical, retention
from controlplane.core.actors import Actor
from controlplane.core.errors import InvalidInput, KeyReused
from controlplane.core.idempotency.models import IdempotencyKey
from controlplane.core.idempotency.retention_rules import IDEMPOTENCY_KEYS, LIFETIME

HEADER = "Idempotency-Key"
USABLE_KEY = re.compile(r"[!-~]{1,200}")
MAX_PATH_LENGTH = 400

# A row older than 24 hours that isn't purged yet counts as absent.
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
class Answer:
    """A stored response: the status and the JSON text."""

    status: int
    body: str


@dataclass(frozen=True)
class Claim:
    """The right to do the work under this key; `earlier` is set if it was done already."""

    row_id: int
    earlier: Answer | None = None


def claim(
    *,
    actor: Actor,
    method: str,
    path: str,
    key: str,
    request: Mapping[str, Any],
    now: datetime,
) -> Claim:
    """Claim the key in the transaction of the effect; waits for a concurrent duplicate.

    Raises :class:`InvalidInput` for an unusable key, :class:`KeyReused` if the key was used with
    another body.
    """
    scope, digest = _asked(actor, method, path, key, request)
    with connection.cursor() as cursor:
        cursor.execute(CLAIM, {**scope, "digest": digest, "now": now, "expired": now - LIFETIME})
        row = cursor.fetchone()
    if row is not None:
        return Claim(row_id=row[0])
    present = IdempotencyKey.objects.get(**scope)
    return Claim(present.pk, _kept(present, digest))


def answered(
    *,
    actor: Actor,
    method: str,
    path: str,
    key: str,
    request: Mapping[str, Any],
    now: datetime,
) -> Answer | None:
    """Return the response stored under this key, if any, without claiming the key or waiting.

    Raises as :func:`claim` does.
    """
    scope, digest = _asked(actor, method, path, key, request)
    rows = IdempotencyKey.objects.filter(created_at__gt=now - LIFETIME, **scope)
    present = rows.exclude(status=None).first()
    return None if present is None else _kept(present, digest)


def _asked(
    actor: Actor, method: str, path: str, key: str, request: Mapping[str, Any]
) -> tuple[dict[str, str], str]:
    """Return the lookup fields of the key, and the digest of the request."""
    if not USABLE_KEY.fullmatch(key):
        raise InvalidInput({HEADER: ["Must be 1 to 200 visible ASCII characters, without spaces."]})
    digest = canonical.digest(request)
    scope = {"actor": actor.identity, "method": method, "path": _kept_path(path), "key": key}
    return scope, digest


def _kept(present: IdempotencyKey, digest: str) -> Answer:
    if present.request_digest != digest:
        raise KeyReused(
            "This Idempotency-Key was used with another body or query. "
            "Use a new key for a new request."
        )
    return Answer(present.status or 0, present.body)


def keep(claimed: Claim, answer: Answer) -> None:
    """Store the first answer, in the same transaction."""
    IdempotencyKey.objects.filter(pk=claimed.row_id).update(status=answer.status, body=answer.body)


def purge_expired(now: datetime) -> int:
    """Delete answers past their 24 hours, some thousands at a time; returns how many."""
    return retention.purge([IDEMPOTENCY_KEYS], now)


def _kept_path(path: str) -> str:
    """Return the normalized path, or its hash if it doesn't fit the column."""
    one_form = path.rstrip("/")
    if len(one_form) <= MAX_PATH_LENGTH and one_form.isascii() and one_form.isprintable():
        return one_form
    return "sha256:" + hashlib.sha256(one_form.encode("utf-8", "surrogatepass")).hexdigest()
