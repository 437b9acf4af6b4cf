"""Filters of letters by error, time and content. Pure.

Lists, dry runs and bulk jobs all use the same :class:`LetterFilter`. The index narrows the
candidates down; the letter itself decides.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

import orjson

from breakers.dead_letters.letters import fingerprints
from breakers.dead_letters.letters.entries import LetterEntry, to_text
from breakers.dead_letters.letters.redaction import configured_redaction
from controlplane.core.canonical import timestamp
from controlplane.core.errors import InvalidInput

MAX_FILTER_LENGTH = 300
MAX_DEPTH = 30
MOMENTS = ("before", "after")
TEXTS = ("fingerprint", "error", "error_type", "q", "field", "value")


@dataclass(frozen=True)
class LetterFilter:
    """Criteria of which a letter has to meet all that are given.

    `error` is a part of the error or its type, in any case, or a fingerprint; `error_type` is the
    whole type. `q` is a part of any name or value, in any case. `field` is a field's name, or a
    dotted path into its JSON (`payload.order.items.0.sku`): it has to exist, with this `value` if
    one is given. `after` is the earliest time of failure, inclusive, `before` the latest,
    exclusive.
    """

    fingerprint: str = ""
    error: str = ""
    error_type: str = ""
    q: str = ""
    field: str = ""
    value: str | None = None
    before: datetime | None = None
    after: datetime | None = None

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> Self:
        """Build a filter from a query, a body, or the result of `as_dict`.

        `field` may be `path=value` too.

        Empty values are ignored, except for `value`. Raises :class:`InvalidInput`.
        """
        errors: dict[str, list[str]] = {}
        known: dict[str, Any] = {}
        for name, value in given.items():
            if value is None or (value == "" and name != "value"):
                continue
            try:
                known[name] = _validate(name, value)
            except ValueError as error:
                errors[name] = [str(error)]
        if "value" not in known and "=" in known.get("field", ""):
            known["field"], _, known["value"] = known["field"].partition("=")
        if known.get("value") == "" and "field" not in known:
            del known["value"]  # A form's empty inputs.
        if "value" in known and not known.get("field"):
            errors.setdefault("value", ["Say of which field."])
        if errors:
            raise InvalidInput(errors)
        return cls(**known)

    def as_dict(self) -> dict[str, str]:
        """Return the given criteria as JSON values."""
        given = {name: value for name, value in vars(self).items() if value not in ("", None)}
        if self.value is not None:
            given["value"] = self.value
        return {
            name: timestamp(value) if isinstance(value, datetime) else value
            for name, value in given.items()
        }

    @property
    def is_everything(self) -> bool:
        return not self.as_dict()

    @property
    def needs_payload(self) -> bool:
        """True if a letter has to be read whole to decide."""
        return bool(self.q or self.field)

    @property
    def uses_index(self) -> bool:
        """True if the index narrows the candidates down."""
        return not dataclasses.replace(self, q="", field="", value=None).is_everything

    def matches(self, entry: LetterEntry) -> bool:
        """Return True if this letter is selected, as far as it was read.

        The fingerprint is not compared again: letters are looked up by it in the index, which may
        have been written when other keys were hidden. Hidden values don't match, as they could be
        guessed otherwise.
        """
        if not (self._failed_so(entry) and self._failed_then(entry) and self._says(entry)):
            return False
        if not self.needs_payload:
            return True
        relevant = tuple(pair for pair in entry.pairs if self._concerns(*pair))
        return self._says(configured_redaction().redact_entry(LetterEntry(entry.id, relevant)))

    def _concerns(self, name: bytes, value: bytes) -> bool:
        """Return True if this field can make the letter match; the others may be large."""
        path = self.field.encode(errors="replace")
        is_on_path = bool(path) and (path == name or path.startswith(name + b"."))
        return is_on_path or bool(
            self.q and _contains_text(LetterEntry("", ((name, value),)), self.q)
        )

    def _says(self, entry: LetterEntry) -> bool:
        return (not self.q or _contains_text(entry, self.q)) and (
            not self.field or has_value(entry, self.field, self.value)
        )

    def _failed_so(self, entry: LetterEntry) -> bool:
        hidden = configured_redaction()
        error_type = hidden.error_type(entry)[: fingerprints.MAX_TYPE_LENGTH]
        if self.error_type and error_type != self.error_type:
            return False
        if not self.error or hidden.fingerprint(entry).digest == self.error:
            return True
        error = hidden.error(entry)[: fingerprints.MAX_ERROR_LENGTH]
        wanted = self.error.lower()
        return wanted in error_type.lower() or wanted in error.lower()

    def _failed_then(self, entry: LetterEntry) -> bool:
        if self.before is None and self.after is None:
            return True
        at = entry.plausible_failed_at
        if at is None:
            return False
        return (self.after is None or at >= self.after) and (
            self.before is None or at < self.before
        )


def has_value(entry: LetterEntry, path: str, value: str | None) -> bool:
    """Return True if there is something at this path, with this value if one is given.

    Text is compared as it is, anything else as JSON.
    """
    found = values_at(entry, path)
    return any(value is None or _as_text(one) == value for one in found)


def values_at(entry: LetterEntry, path: str) -> Iterator[Any]:
    """Yield the values at a path: bytes of a field, or a value in its JSON.

    Names may contain dots, and may repeat.
    """
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        name, inside = ".".join(parts[:length]).encode(errors="replace"), parts[length:]
        for each, value in entry.pairs:
            if each != name:
                continue
            if not inside:
                yield value
            elif (inner := _value_inside(value, inside)) is not _NOTHING:
                yield inner


def _contains_text(entry: LetterEntry, wanted: str) -> bool:
    lowered = wanted.lower()
    return any(
        lowered in to_text(part).lower() or lowered in _unescape(part)
        for pair in entry.pairs
        for part in pair
    )


def _unescape(value: bytes) -> str:
    r"""Return JSON with its escapes (`\uac00`) resolved, in lower case; empty if it has none."""
    if b"\\" not in value:
        return ""
    read = _parse_json(value)
    return "" if read is _NOTHING else _to_json(read).lower()


def _value_inside(value: Any, parts: list[str]) -> Any:
    """Return the value at a path in JSON, also where text in it is JSON again."""
    for part in parts:
        if isinstance(value, bytes | str):
            value = _parse_json(value)
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isascii() and part.isdigit():
            if len(part) > 9 or int(part) >= len(value):
                return _NOTHING
            value = value[int(part)]
        else:
            return _NOTHING
    return value


def _parse_json(value: bytes | str) -> Any:
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return _NOTHING


def _as_text(value: Any) -> str:
    if isinstance(value, bytes):
        return to_text(value)
    return value if isinstance(value, str) else _to_json(value)


def _to_json(value: Any) -> str:
    """Return JSON; empty if the value is nested too deeply to be written."""
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:
        return ""


def _validate(name: str, value: Any) -> Any:
    if name in MOMENTS:
        return _parse_moment(value)
    if name not in TEXTS:
        raise ValueError("Nothing is chosen by this.")
    if not isinstance(value, str):
        raise ValueError("Must be text.")
    if len(value) > MAX_FILTER_LENGTH:
        raise ValueError(f"At most {MAX_FILTER_LENGTH} characters.")
    if "\x00" in value or not _is_text(value):
        raise ValueError("Must be text.")
    if name == "field" and value.count(".") > MAX_DEPTH:
        raise ValueError(f"At most {MAX_DEPTH} steps deep.")
    return value


def _is_text(value: str) -> bool:
    """Return False if the text has an unpaired surrogate."""
    return not any("\ud800" <= each <= "\udfff" for each in value)


def _parse_moment(value: Any) -> datetime:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError as error:
            raise ValueError("Must be a time, like 2026-01-31T09:00:00Z.") from error
    if not isinstance(value, datetime):
        raise ValueError("Must be a time, like 2026-01-31T09:00:00Z.")
    moment: datetime = value if value.tzinfo else value.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("Must be a time within these centuries.") from error


_NOTHING = object()
