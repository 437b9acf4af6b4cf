"""Differences between two messages, by field, and by value in JSON. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import orjson

from breakers.dead_letters.letters.entries import Pairs, to_text
from breakers.dead_letters.letters.redaction import REDACTED, Redaction

from . import presentation

MAX_DIFFERENCES = 200
MAX_DEPTH = 50
MAX_SHOWN_BYTES = 2048


@dataclass(frozen=True)
class FieldChange:
    """A field, or a value in it (`payload.order.items.0.sku`), before and after.

    None if missing. Values are as :mod:`breakers.dead_letters.letters.presentation` shows them.
    """

    path: str
    before: presentation.DisplayValue | None
    after: presentation.DisplayValue | None


def compare_messages(before: Pairs, after: Pairs, redaction: Redaction | None) -> list[FieldChange]:
    """Return the first `MAX_DIFFERENCES` differences, ordered by field, without hidden values."""
    return list(islice(_iterate_changes(before, after, redaction), MAX_DIFFERENCES))


def _iterate_changes(
    before: Pairs, after: Pairs, redaction: Redaction | None
) -> Iterator[FieldChange]:
    old, new = _group_by_name(before), _group_by_name(after)
    for name in dict.fromkeys([*old, *new]):
        was, now = old.get(name, []), new.get(name, [])
        for at in range(max(len(was), len(now))):
            one = was[at] if at < len(was) else None
            other = now[at] if at < len(now) else None
            if one != other:
                yield from _compare_field(name, one, other, redaction)


def _compare_field(
    name: bytes, was: bytes | None, now: bytes | None, redaction: Redaction | None
) -> Iterator[FieldChange]:
    path = to_text(name)
    hidden = redaction is not None and redaction.is_hidden(name)
    before, after = _leaves_by_path(was, path, redaction), _leaves_by_path(now, path, redaction)
    if hidden or before is None or after is None:
        yield FieldChange(
            path, _show_value(was, hidden, redaction), _show_value(now, hidden, redaction)
        )
        return
    for each in dict.fromkeys([*before, *after]):
        one, other = before.get(each), after.get(each)
        if one != other:
            yield FieldChange(each, _show_leaf(one, redaction), _show_leaf(other, redaction))


def _show_leaf(
    leaf: "_Leaf | None", redaction: Redaction | None
) -> presentation.DisplayValue | None:
    return None if leaf is None else _show_value(leaf.said, leaf.hidden, redaction)


def _show_value(
    given: bytes | None, hidden: bool, redaction: Redaction | None
) -> presentation.DisplayValue | None:
    if given is None:
        return None
    if hidden:
        return REDACTED
    seen = given if redaction is None else redaction.redact_text(given)
    return presentation.display_value(seen, most=MAX_SHOWN_BYTES)


class _Leaf(NamedTuple):
    """A scalar value as JSON writes it; `hidden` if a key above it is hidden."""

    said: bytes
    hidden: bool


def _leaves_by_path(
    given: bytes | None, path: str, redaction: Redaction | None
) -> dict[str, _Leaf] | None:
    """Return the leaves by path; None if it is no JSON object or array, or nested too deeply."""
    if given is None or given[:1] not in {b"{", b"["}:
        return None
    try:
        leaves = _iterate_leaves(orjson.loads(given), path, redaction)
        return {at: _Leaf(orjson.dumps(value), hidden) for at, value, hidden in leaves}
    except (orjson.JSONDecodeError, RecursionError):
        return None


def _iterate_leaves(
    root: Any, path: str, redaction: Redaction | None
) -> Iterator[tuple[str, Any, bool]]:
    """Yield every leaf with its path, and True if a key above it is hidden.

    Keys are matched whole, as they may contain dots.
    """
    waiting = [(path, root, False, 0)]
    while waiting:
        at, value, hidden, depth = waiting.pop()
        if depth > MAX_DEPTH:
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


def _group_by_name(pairs: Pairs) -> dict[bytes, list[bytes]]:
    found: dict[bytes, list[bytes]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found
