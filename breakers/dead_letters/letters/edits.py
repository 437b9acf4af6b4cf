"""Edited messages: some fields replaced, all others unchanged. Pure."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from breakers.dead_letters.letters.entries import (
    METADATA,
    RETRY_COUNT,
    RETRY_OF,
    LetterEntry,
    to_text,
)
from breakers.dead_letters.letters.redaction import REDACTED
from controlplane.core.errors import InvalidInput

_ESCAPED = re.compile(r"\\+u00([2-7][0-9a-fA-F])")
RESERVED_NAMES = METADATA | {RETRY_OF, RETRY_COUNT}


def apply_edits(
    entry: LetterEntry, edited_fields: Mapping[str, Any]
) -> tuple[tuple[bytes, bytes], ...]:
    """Return the original message with new values for some names, in its order.

    New names come last. A text is taken as it is, any other JSON value as compact JSON, and null
    removes the field. A repeated name takes a list of as many values. Raises :class:`InvalidInput`,
    by name, for invalid values, reserved names, and if no field would remain.
    """
    problems: dict[str, list[str]] = {}
    values: dict[bytes, list[bytes]] = {}
    known = _names_as_shown(entry)
    for shown, given in edited_fields.items():
        name = known.get(shown) or _encode_text(shown)
        problem = _find_problem(entry, name, given)
        if name is None or problem:
            problems[f"edited_fields.{to_text(shown.encode('utf-8', 'replace'))}"] = [problem]
            continue
        values[name] = _encode_values(entry, name, given)
    if problems:
        raise InvalidInput(problems)
    edited = _replace_values(entry, values)
    if not edited:
        raise InvalidInput({"edited_fields": ["This would leave a message without any field."]})
    return edited


def _replace_values(
    entry: LetterEntry, values: Mapping[bytes, list[bytes]]
) -> tuple[tuple[bytes, bytes], ...]:
    left = {name: list(new) for name, new in values.items()}
    edited = []
    for name, value in entry.original:
        if name not in left:
            edited.append((name, value))
        elif left[name]:
            edited.append((name, left[name].pop(0)))
    there = {name for name, _ in entry.original}
    new = ((name, value) for name, some in left.items() if name not in there for value in some)
    return (*edited, *new)


def _names_as_shown(entry: LetterEntry) -> dict[str, bytes]:
    """Return names by their displayed form.

    A binary name can be edited by its displayed form unless that is ambiguous.
    """
    shown: dict[str, set[bytes]] = {}
    for name, _ in entry.original:
        shown.setdefault(to_text(name), set()).add(name)
    return {said: next(iter(names)) for said, names in shown.items() if len(names) == 1}


def _find_problem(entry: LetterEntry, name: bytes | None, given: Any) -> str:
    if not name:
        return "This can't be the name of a field."
    if name in RESERVED_NAMES:
        return "This is a note on the message, not part of it; a retry leaves it behind."
    if REDACTED in _all_text(given):
        return f"{REDACTED} stands for a value that is hidden: reveal it, or leave the field out."
    times = _count_name(entry, name)
    if times > 1 and given is not None and not (isinstance(given, list) and len(given) == times):
        return f"This name is there {times} times: give a list of {times} values, or null."
    each = given if times > 1 and given is not None else [given]
    if any(one is not None and _encode_value(one) is None for one in each):
        return "This value can't be written as UTF-8 or as JSON."
    return ""


def _encode_values(entry: LetterEntry, name: bytes, given: Any) -> list[bytes]:
    several = _count_name(entry, name) > 1 and given is not None
    each: Sequence[Any] = given if several else [given]
    return [value for one in each if one is not None and (value := _encode_value(one)) is not None]


def _count_name(entry: LetterEntry, name: bytes) -> int:
    return sum(each == name for each, _ in entry.original)


def _encode_value(given: Any) -> bytes | None:
    """Return the bytes of a value, or None if it can't be encoded."""
    if isinstance(given, str):
        return _encode_text(given)
    try:
        return _encode_text(
            json.dumps(given, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        )
    except (TypeError, ValueError):
        return None


def _encode_text(given: str) -> bytes | None:
    try:
        return given.encode()
    except UnicodeEncodeError:
        return None


def _all_text(given: Any) -> str:
    """Return all text in a value, including what JSON in it escapes."""
    said = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, default=str)
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), said)
