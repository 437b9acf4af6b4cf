"""Idempotency keys: one key for all attempts of a logical call, by which receivers deduplicate."""

import hashlib
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from switchgear.patterns import retried_calls
from switchgear.patterns.retried_calls import RetriedCall

MAX_KEY_LENGTH = 255

_explicit: ContextVar[str | None] = ContextVar("switchgear_idempotency_key", default=None)
explicit_key = _explicit.get
"""Return the key set by :func:`idempotency_key_of`, None outside such a block."""


def idempotency_key() -> str | None:
    """Return the idempotency key of the current call, the same in all its attempts.

    Inside a block of :func:`idempotency_key_of`, return the key of the block; inside a retry, a
    random key of the outermost active retry of this process; otherwise None.
    """
    explicit = _explicit.get()
    if explicit is not None:
        return explicit
    active = retried_calls.iter_outward(retried_calls.find_innermost())
    ours = [each for each in active if each.owner is not None]
    if not ours:
        return None
    logical = ours[-1]
    if logical.key is None:
        logical.key = str(uuid.uuid4())
    return logical.key


@contextmanager
def idempotency_key_of(key: str) -> Iterator[str]:
    """Context manager: use `key` as the idempotency key of the one request inside the block.

    Raise :class:`ValueError` unless the key is 1 to 255 visible ASCII characters.
    """
    if not 0 < len(key) <= MAX_KEY_LENGTH or not all("!" <= each <= "~" for each in key):
        raise ValueError(
            f"an idempotency key must be 1 to {MAX_KEY_LENGTH} visible ASCII characters"
        )
    before = _explicit.get()
    _explicit.set(key)
    try:
        yield key
    finally:
        _explicit.set(before)


def request_key(*parts: bytes) -> str:
    """Return the idempotency key for one request of a call, the same in all attempts of the call.

    The key is derived from the call's own key, the `parts` of the request, and the number of equal
    requests that this attempt made before, so that two intended requests have two keys. Outside of
    a retry the key is random. Inside :func:`idempotency_key_of`, it is the key of the block.
    """
    explicit = _explicit.get()
    if explicit is not None:
        return explicit
    key, active = idempotency_key(), retried_calls.find_active()
    if key is None or active is None:
        return str(uuid.uuid4())
    digest = hashlib.sha256(key.encode())
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    digest.update(_request_number(active, digest.hexdigest()).to_bytes(8, "big"))
    return str(uuid.UUID(bytes=digest.digest()[:16], version=4))


def _request_number(attempt: RetriedCall, digest: str) -> int:
    """Return the number, from 1, that tells equal requests of one logical call apart.

    `digest` identifies the request. A repeated attempt gets the same numbers as the one before.
    """
    if (counts := attempt.request_counts) is None:
        counts = attempt.request_counts = Counter()
    counts[digest] += 1
    outer = next(retried_calls.iter_outward(attempt.outer), None)
    if outer is None or outer.owner is None:
        return counts[digest]
    if (numbers := attempt.request_numbers) is None:
        numbers = attempt.request_numbers = {}
    known = numbers.setdefault(digest, [])
    if len(known) < counts[digest]:
        known.append(_request_number(outer, digest))
    return known[counts[digest] - 1]
