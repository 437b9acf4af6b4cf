"""One change of one field, made to many messages: set, replace or remove a value. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import orjson

from breakers.dead_letters.letters import lossless_json
from breakers.dead_letters.letters.entries import RESERVED_NAMES, LetterEntry, Pairs, to_text
from breakers.dead_letters.letters.filters import MAX_DEPTH, MAX_FILTER_LENGTH, values_at
from breakers.dead_letters.letters.lossless_json import ObjectMembers
from breakers.dead_letters.letters.redaction import REDACTED, Redaction
from controlplane.core.errors import InvalidInput

SET, REPLACE, REMOVE = OPERATIONS = ("set", "replace", "remove")
MAX_VALUE_LENGTH = 10_000
NAMES = ("op", "path", "value", "find")


class _NotApplicable(Exception):
    """Raised if a message has no place for the change."""


@dataclass(frozen=True)
class FieldEdit:
    """A change at `path`, a field name or a dotted path into a field's JSON.

    `set` writes `value`, adding the last key if it is missing; `replace` writes it only where the
    present value equals `find`; `remove` removes the field or key. Values are JSON. A text written
    to a whole field is stored as it is, any other value as compact JSON.
    """

    op: str
    path: str
    value: Any = None
    find: Any = None

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> Self:
        """Build an edit from a request body or the result of `as_dict`; raise `InvalidInput`."""
        errors: dict[str, list[str]] = {
            name: ["Not a field of an edit."] for name in given if name not in NAMES
        }
        op, path = given.get("op"), given.get("path")
        if op not in OPERATIONS:
            errors["op"] = [f"Must be one of {', '.join(OPERATIONS)}."]
        if not isinstance(path, str) or not path or len(path) > MAX_FILTER_LENGTH:
            errors["path"] = [f"Enter a field, of at most {MAX_FILTER_LENGTH} characters."]
        elif path.count(".") > MAX_DEPTH:
            errors["path"] = [f"The path can have at most {MAX_DEPTH} parts."]
        elif path.encode(errors="replace") in RESERVED_NAMES:
            errors["path"] = ["This is metadata of the dead letter, not part of the message."]
        needed = {SET: ("value",), REPLACE: ("find", "value")}.get(str(op), ())
        for name in ("value", "find"):
            if (name in given) != (name in needed):
                need = "Enter a value" if name in needed else f"Leave it out: {op} takes no value"
                errors[name] = [f"{need}."]
            elif name in given and (problem := _find_problem(given[name])):
                errors[name] = [problem]
        if errors:
            raise InvalidInput(errors)
        return cls(**given)

    def as_dict(self) -> dict[str, Any]:
        needed = {SET: ("value",), REPLACE: ("find", "value")}.get(self.op, ())
        return {"op": self.op, "path": self.path, **{n: getattr(self, n) for n in needed}}

    def redacted(self, redaction: Redaction) -> dict[str, Any]:
        """Return the edit as JSON, with values at a hidden path redacted."""
        is_hidden = any(redaction.is_hidden(part.encode()) for part in self.path.split("."))
        shown = self.as_dict()
        for name in ("value", "find"):
            if name in shown:
                shown[name] = REDACTED if is_hidden else _redact(shown[name], redaction)
        return shown

    def apply(self, entry: LetterEntry, redaction: Redaction) -> Pairs | None:
        """Return the original message with the change; None if the change does not apply.

        It does not apply either if the message is the same afterwards. A hidden value never equals
        `find`, since replacing could be used to guess it.
        """
        original = entry.original
        if self.op == REPLACE and not self._is_found(entry, redaction):
            return None
        try:
            edited = self._edit_pairs(original)
        except (_NotApplicable, ValueError, RecursionError):
            return None
        return edited if edited and edited != original else None

    def _is_found(self, entry: LetterEntry, redaction: Redaction) -> bool:
        path = self.path.encode(errors="replace")
        on_path = [
            one for one in entry.original if path == one[0] or path.startswith(one[0] + b".")
        ]
        visible = redaction.redact_entry(LetterEntry(entry.id, tuple(on_path)))
        return any(_is_same(one, self.find) for one in values_at(visible, self.path))

    def _edit_pairs(
        self, pairs: tuple[tuple[bytes, bytes], ...]
    ) -> tuple[tuple[bytes, bytes], ...]:
        """Return the pairs with the change, in the field with the longest name on the path.

        Raises :class:`_NotApplicable`, and `ValueError` if a field on the path is not JSON.
        """
        parts = self.path.split(".")
        names = [name for name, _ in pairs]
        for length in range(len(parts), 0, -1):
            name, inside = ".".join(parts[:length]).encode(errors="replace"), parts[length:]
            if name in names:
                break
        else:
            if self.op != SET or len(parts) > 1:
                raise _NotApplicable
            return (*pairs, (self.path.encode(), _to_bytes(self.value)))
        if names.count(name) > 1:
            raise _NotApplicable
        index = names.index(name)
        if inside:
            tree = self._edit_tree(lossless_json.parse_json(pairs[index][1]), inside)
            changed: tuple[tuple[bytes, bytes], ...] = (
                (name, lossless_json.to_json(tree).encode()),
            )
        else:
            changed = () if self.op == REMOVE else ((name, _to_bytes(self.value)),)
        return (*pairs[:index], *changed, *pairs[index + 1 :])

    def _edit_tree(self, tree: Any, parts: list[str]) -> Any:
        if type(tree) is str:  # JSON within JSON.
            return lossless_json.to_json(self._edit_tree(lossless_json.parse_json(tree), parts))
        if not isinstance(tree, list):
            raise _NotApplicable
        if lossless_json.is_object(tree):
            return self._edit_object(tree, parts)
        place, rest = parts[0], parts[1:]
        if not (place.isascii() and place.isdigit()) or len(place) > 9 or int(place) >= len(tree):
            raise _NotApplicable
        index = int(place)
        return [*tree[:index], *self._edit_member(tree[index], rest), *tree[index + 1 :]]

    def _edit_object(self, tree: Any, parts: list[str]) -> Any:
        key, rest = parts[0], parts[1:]
        keys = [name for name, _ in tree]
        if keys.count(key) > 1:
            raise _NotApplicable
        if key not in keys:
            if self.op != SET or rest:
                raise _NotApplicable
            return ObjectMembers([*tree, (key, _to_tree(self.value))])
        index = keys.index(key)
        changed = [(key, member) for member in self._edit_member(tree[index][1], rest)]
        return ObjectMembers([*tree[:index], *changed, *tree[index + 1 :]])

    def _edit_member(self, member: Any, rest: list[str]) -> list[Any]:
        """Return what takes the place of a value: one value, or none if it is removed."""
        if rest:
            return [self._edit_tree(member, rest)]
        return [] if self.op == REMOVE else [_to_tree(self.value)]


def parse_value(text: str) -> Any:
    """Return the JSON value of a form's text; text that is no JSON is taken as it is."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _find_problem(value: Any) -> str:
    try:
        text = orjson.dumps(value).decode()
    except orjson.JSONEncodeError:
        return "This can't be encoded as JSON."
    if REDACTED in text:
        return f"{REDACTED} stands for a hidden value and can't be used."
    return f"At most {MAX_VALUE_LENGTH:,} characters." if len(text) > MAX_VALUE_LENGTH else ""


def _is_same(present: Any, wanted: Any) -> bool:
    if isinstance(present, bytes):
        text = to_text(present)
        return text == wanted if isinstance(wanted, str) else _is_same(parse_value(text), wanted)
    return type(present) is type(wanted) and bool(present == wanted)


def _to_bytes(value: Any) -> bytes:
    return (
        value.encode()
        if isinstance(value, str)
        else lossless_json.to_json(_to_tree(value)).encode()
    )


def _to_tree(value: Any) -> Any:
    """Return a JSON value as :func:`lossless_json.parse_json` does."""
    return lossless_json.parse_json(json.dumps(value))


def _redact(value: Any, redaction: Redaction) -> Any:
    text = redaction.redact_text(orjson.dumps(value))
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return REDACTED
