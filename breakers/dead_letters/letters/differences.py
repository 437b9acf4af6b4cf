"""Differences between two messages, by field and by path in JSON values. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, zip_longest
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
    """A field, or a JSON value in it (`payload.order.items.0.sku`), before and after an edit.

    A missing value is None. Values are formatted by :func:`presentation.display_value`.
    """

    path: str
    before: presentation.DisplayValue | None
    after: presentation.DisplayValue | None


def compare_messages(before: Pairs, after: Pairs, redaction: Redaction | None) -> list[FieldChange]:
    """Return up to `MAX_DIFFERENCES` differences between two messages, hidden values redacted."""
    old, new = _group_by_name(before), _group_by_name(after)
    changes = (
        change
        for name in dict.fromkeys([*old, *new])
        for one, other in zip_longest(old.get(name, ()), new.get(name, ()))
        if one != other
        for change in _compare_field(name, one, other, redaction)
    )
    return list(islice(changes, MAX_DIFFERENCES))


def _compare_field(
    name: bytes, before: bytes | None, after: bytes | None, redaction: Redaction | None
) -> Iterator[FieldChange]:
    path = to_text(name)
    is_hidden = redaction is not None and redaction.is_hidden(name)
    old = _leaves_by_path(before, path, redaction)
    new = _leaves_by_path(after, path, redaction)
    if is_hidden or old is None or new is None:
        whole = _Leaf(before, is_hidden), _Leaf(after, is_hidden)
        old, new = {path: whole[0]}, {path: whole[1]}
    for each in dict.fromkeys([*old, *new]):
        one, other = old.get(each, _MISSING), new.get(each, _MISSING)
        if one != other:
            yield FieldChange(each, _show_leaf(one, redaction), _show_leaf(other, redaction))


class _Leaf(NamedTuple):
    """A scalar as JSON bytes, None if missing. `is_hidden`: a key on its path is a hidden key."""

    value: bytes | None
    is_hidden: bool


_MISSING = _Leaf(None, False)


def _show_leaf(leaf: _Leaf, redaction: Redaction | None) -> presentation.DisplayValue | None:
    if leaf.value is None:
        return None
    if leaf.is_hidden:
        return REDACTED
    shown = leaf.value if redaction is None else redaction.redact_text(leaf.value)
    return presentation.display_value(shown, most=MAX_SHOWN_BYTES)


def _leaves_by_path(
    value: bytes | None, path: str, redaction: Redaction | None
) -> dict[str, _Leaf] | None:
    """Return the scalar values in a JSON object or list, by path.

    Return None for any other value, and if it is nested too deeply.
    """
    if value is None or value[:1] not in {b"{", b"["}:
        return None
    try:
        leaves = _iterate_leaves(orjson.loads(value), path, redaction)
        return {at: _Leaf(orjson.dumps(leaf), is_hidden) for at, leaf, is_hidden in leaves}
    except (orjson.JSONDecodeError, RecursionError):
        return None


def _iterate_leaves(
    root: Any, path: str, redaction: Redaction | None
) -> Iterator[tuple[str, Any, bool]]:
    """Yield path, value and `is_hidden` for every scalar value in JSON.

    Hidden keys are recognized one by one, not by the path, since keys may contain dots.
    """
    hides = redaction.is_hidden if redaction is not None else lambda _key: False
    waiting = [(path, root, False, 0)]
    while waiting:
        at, value, hidden, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise RecursionError
        if isinstance(value, dict | list) and value:
            items = value.items() if isinstance(value, dict) else enumerate(value)
            below = [
                (f"{at}.{key}", item, hidden or hides(str(key).encode()), depth + 1)
                for key, item in items
            ]
            waiting += reversed(below)
        else:
            yield at, value, hidden


def _group_by_name(pairs: Pairs) -> dict[bytes, list[bytes]]:
    values: dict[bytes, list[bytes]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    return values
