"""Conversion of keys to text: callers also pass numbers, UUIDs and enum members."""

import sys
from enum import Enum
from numbers import Integral
from operator import index
from typing import TYPE_CHECKING

KEY_TYPES = "str, int, UUID or enum member"

MAX_CACHED_KEYS = 32
"""Maximum number of keys in a query whose decision is cached."""

if TYPE_CHECKING:
    from uuid import UUID

    Key = str | int | UUID | Enum
    """A valid key, compared by its text. A bool is not a key."""
else:
    Key = object

CacheKey = tuple[object, object, object]
"""Segment, feature and experiments of a query."""


def key_text(value: object) -> str | None:
    """Return the text of `value`, or None if a key can't be of its type.

    Text stays unchanged, an integer (of any library) is written in decimal, a UUID with its
    hyphens, an enum member as its value. A bool is refused, although it is an integer in Python.
    Errors raised by the methods of `value` are not caught.
    """
    if isinstance(value, str):
        return str.__str__(value)  # `str(value)` of an enum member may be its name.
    if isinstance(value, Enum):
        return key_text(value.value)
    uuid = sys.modules.get("uuid")  # There are no UUIDs before the module is imported.
    if uuid is not None and isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, bool) or not isinstance(value, (int, Integral)):
        return None
    return int.__repr__(index(value))


def require_key_text(value: object) -> str | None:
    """Return the text of the key `value`, None for None. Raise :class:`TypeError` if invalid."""
    if value is None:
        return None
    text = key_text(value)
    if text is None:
        raise TypeError(f"key must be a {KEY_TYPES}, not {type(value).__name__:.100}")
    return text


def cache_key(query: CacheKey) -> CacheKey | None:
    """Return `query` with all keys as text, for use as a cache key.

    Return None if decisions on `query` are not cached. The text keeps 1, True and 1.0, which are
    equal but not all valid keys, from sharing a decision.
    """
    parts = tuple(map(_make_cacheable, query))
    return None if _UNCACHEABLE in parts else parts  # type: ignore[return-value]


_UNCACHEABLE = object()


def _make_cacheable(part: object) -> object:
    if part is None or type(part) is str or (type(part) is tuple and not part):
        return part
    if isinstance(part, frozenset):
        is_text = len(part) <= MAX_CACHED_KEYS and all(type(each) is str for each in part)
        return part if is_text else _UNCACHEABLE
    if not isinstance(part, tuple):
        return _plain_text(part) or _UNCACHEABLE
    texts = tuple(map(_plain_text, part)) if len(part) <= MAX_CACHED_KEYS else (None,)
    return _UNCACHEABLE if None in texts else texts


def _plain_text(value: object) -> str | None:
    """Return `value` if it is a str with the built-in comparison, else its text as a key."""
    if isinstance(value, str) and type(value).__eq__ is str.__eq__:
        return value
    return key_text(value)
