"""What differs between two messages: field by field, and in JSON value by value. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import orjson

from breakers.dead_letters.letters.entries import Pairs, text
from breakers.dead_letters.letters.redaction import REDACTED, Redaction

from . import presentation

MAX_DIFFERENCES = 200
DEEPEST = 50
SHOWN_BYTES = 2048


@dataclass(frozen=True)
class Change:
    """What one field, or one value in it (`payload.order.items.0.sku`), was and is; None: it is
    not there. Values are as :mod:`breakers.dead_letters.letters.presentation` shows them."""

    path: str
    before: presentation.Shown | None
    after: presentation.Shown | None


def between(before: Pairs, after: Pairs, redaction: Redaction | None) -> list[Change]:
    """Return the first `MAX_DIFFERENCES` differences, ordered by field, without hidden values."""
    return list(islice(_found(before, after, redaction), MAX_DIFFERENCES))


def _found(before: Pairs, after: Pairs, redaction: Redaction | None) -> Iterator[Change]:
    old, new = _by_name(before), _by_name(after)
    for name in dict.fromkeys([*old, *new]):
        was, now = old.get(name, []), new.get(name, [])
        for at in range(max(len(was), len(now))):
            one = was[at] if at < len(was) else None
            other = now[at] if at < len(now) else None
            if one != other:
                yield from _of_field(name, one, other, redaction)


def _of_field(
    name: bytes, was: bytes | None, now: bytes | None, redaction: Redaction | None
) -> Iterator[Change]:
    path = text(name)
    hidden = redaction is not None and redaction.is_hidden(name)
    before, after = _values(was, path, redaction), _values(now, path, redaction)
    if hidden or before is None or after is None:
        yield Change(path, _shown(was, hidden, redaction), _shown(now, hidden, redaction))
        return
    for each in dict.fromkeys([*before, *after]):
        one, other = before.get(each), after.get(each)
        if one != other:
            yield Change(each, _leaf_shown(one, redaction), _leaf_shown(other, redaction))


def _leaf_shown(leaf: "_Leaf | None", redaction: Redaction | None) -> presentation.Shown | None:
    return None if leaf is None else _shown(leaf.said, leaf.hidden, redaction)


def _shown(
    given: bytes | None, hidden: bool, redaction: Redaction | None
) -> presentation.Shown | None:
    if given is None:
        return None
    if hidden:
        return REDACTED
    seen = given if redaction is None else redaction.within(given)
    return presentation.value(seen, most=SHOWN_BYTES)


class _Leaf(NamedTuple):
    """A value that is none of values, as JSON writes it; `hidden` if a key above it is."""

    said: bytes
    hidden: bool


def _values(given: bytes | None, path: str, redaction: Redaction | None) -> dict[str, _Leaf] | None:
    """By their paths; None if it is no JSON object or array, or too deep."""
    if given is None or given[:1] not in {b"{", b"["}:
        return None
    try:
        leaves = _leaves(orjson.loads(given), path, redaction)
        return {at: _Leaf(orjson.dumps(value), hidden) for at, value, hidden in leaves}
    except (orjson.JSONDecodeError, RecursionError):
        return None


def _leaves(root: Any, path: str, redaction: Redaction | None) -> Iterator[tuple[str, Any, bool]]:
    """Every value that is none of values, by its path, and whether a key above it is hidden.

    A key is asked about whole: it may have dots itself.
    """
    waiting = [(path, root, False, 0)]
    while waiting:
        at, value, hidden, depth = waiting.pop()
        if depth > DEEPEST:
            raise RecursionError
        if isinstance(value, dict | list) and value:
            items = value.items() if isinstance(value, dict) else enumerate(value)
            below = [
                (f"{at}.{key}", item, hidden or _is_hidden(key, redaction), depth + 1)
                for key, item in items
            ]
            waiting += reversed(below)
        else:
            yield at, value, hidden


def _is_hidden(key: str | int, redaction: Redaction | None) -> bool:
    return redaction is not None and redaction.is_hidden(str(key).encode())


def _by_name(pairs: Pairs) -> dict[bytes, list[bytes]]:
    found: dict[bytes, list[bytes]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found
