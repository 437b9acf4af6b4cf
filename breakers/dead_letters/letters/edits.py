"""Edited messages: new values for some fields, the others unchanged. Pure."""

import json
import re
from collections.abc import Mapping
from typing import Any

from breakers.dead_letters.letters.entries import RESERVED_NAMES, LetterEntry, to_text
from breakers.dead_letters.letters.redaction import REDACTED
from controlplane.core.errors import InvalidInput

_ESCAPED = re.compile(r"\\+u00([2-7][0-9a-fA-F])")


def apply_edits(
    entry: LetterEntry, edited_fields: Mapping[str, Any]
) -> tuple[tuple[bytes, bytes], ...]:
    """Return the original message with the edited fields replaced, in order; new fields come last.

    A text is stored as it is, any other JSON value as compact JSON; null removes the field. For a
    field name that occurs several times, the new value is a list with a value for each occurrence.

    Raises :class:`InvalidInput`, whose errors name the field, for invalid values and reserved
    names, and if no field would remain.
    """
    problems: dict[str, list[str]] = {}
    values: dict[bytes, list[bytes]] = {}
    names, original = _names_as_shown(entry), [name for name, _ in entry.original]
    for shown, given in edited_fields.items():
        name = names.get(shown) or _encode_name(shown)
        try:
            values[name] = _encode_values(name, given, original.count(name))
        except ValueError as error:
            problems[f"edited_fields.{to_text(shown.encode('utf-8', 'replace'))}"] = [str(error)]
    if problems:
        raise InvalidInput(problems)
    edited = _replace_values(entry, values)
    if not edited:
        raise InvalidInput({"edited_fields": ["A message needs at least one field."]})
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
    old = {name for name, _ in entry.original}
    added = ((name, value) for name, new in left.items() if name not in old for value in new)
    return (*edited, *added)


def _names_as_shown(entry: LetterEntry) -> dict[str, bytes]:
    """Return the field names by the text that displays them, without ambiguous texts."""
    shown: dict[str, set[bytes]] = {}
    for name, _ in entry.original:
        shown.setdefault(to_text(name), set()).add(name)
    return {text: next(iter(names)) for text, names in shown.items() if len(names) == 1}


def _encode_values(name: bytes, given: Any, times: int) -> list[bytes]:
    """Encode the edited values of a field, one for each of its `times` occurrences.

    Raises `ValueError` if `given` can't be written to this field.
    """
    if not name:
        raise ValueError("Fields can't have this name.")
    if name in RESERVED_NAMES:
        raise ValueError("This is metadata of the dead letter, not part of the message.")
    # A text, also in nested JSON, may contain escapes such as `\u20ac`.
    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, default=str)
    if REDACTED in _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text):
        raise ValueError(
            f"{REDACTED} stands for a hidden value. Reveal it first, or leave the field out."
        )
    if given is None:
        return []
    if times > 1 and not (isinstance(given, list) and len(given) == times):
        raise ValueError(
            f"The message has {times} fields of this name. Give a list of {times} values, or null."
        )
    try:
        new = given if times > 1 else [given]
        return [_encode_value(one) for one in new if one is not None]
    except (TypeError, ValueError) as error:
        raise ValueError("This value can't be encoded as UTF-8 or JSON.") from error


def _encode_value(given: Any) -> bytes:
    if not isinstance(given, str):
        given = json.dumps(given, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return str(given).encode()


def _encode_name(shown: str) -> bytes:
    try:
        return shown.encode()
    except UnicodeEncodeError:
        return b""
