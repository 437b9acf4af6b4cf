"""Filters of letters by error, time and content, shared by lists, dry runs and bulk jobs.

The index selects letters that may match; :meth:`LetterFilter.matches` decides for each of them.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

import orjson

from breakers.dead_letters.letters import fingerprints, ids
from breakers.dead_letters.letters.entries import LetterEntry, Pairs, to_text
from breakers.dead_letters.letters.redaction import configured_redaction
from controlplane.core.canonical import timestamp
from controlplane.core.errors import InvalidInput, NotFound

MAX_FILTER_LENGTH = 300
MAX_DEPTH = 30
MOMENTS = ("before", "after")
TEXTS = ("fingerprint", "error", "error_type", "q", "field", "value")
IDS = "ids"
MAX_IDS = 200
LABELS = {
    "fingerprint": "group",
    "error_type": "error type",
    "error": "error contains",
    "q": "contains",
    "field": "field",
    "value": "is",
    "after": "failed from",
    "before": "until",
    "ids": "selected",
}


@dataclass(frozen=True)
class LetterFilter:
    """Criteria that a letter has to meet; empty criteria are ignored.

    `error` is a case-insensitive part of the error or its type, or a fingerprint; `error_type` is
    the whole type. `q` is a case-insensitive part of any name or value. `field` is a field name, or
    a dotted path into a field's JSON (`payload.order.items.0.sku`); the letter must have a value
    there, which must equal `value` if that is given. The time of failure is at or after `after`,
    and before `before`. `ids` are entry ids, of which the letter must have one.
    """

    fingerprint: str = ""
    error: str = ""
    error_type: str = ""
    q: str = ""
    field: str = ""
    value: str | None = None
    before: datetime | None = None
    after: datetime | None = None
    ids: tuple[str, ...] = ()

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> Self:
        """Build a filter from query parameters, a request body, or the result of `as_dict`.

        `field` may also be `path=value`. Empty values are ignored, except for `value`. Raises
        :class:`InvalidInput`.
        """
        errors: dict[str, list[str]] = {}
        criteria: dict[str, Any] = {}
        for name, value in given.items():
            if value is None or (value == "" and name != "value"):
                continue
            try:
                criteria[name] = _validate_criterion(name, value)
            except ValueError as error:
                errors[name] = [str(error)]
        if "value" not in criteria and "=" in criteria.get("field", ""):
            criteria["field"], _, criteria["value"] = criteria["field"].partition("=")
        if criteria.get("value") == "" and "field" not in criteria:
            del criteria["value"]  # The form was submitted with both inputs empty.
        if "value" in criteria and not criteria.get("field"):
            errors.setdefault("value", ["Name the field."])
        if errors:
            raise InvalidInput(errors)
        return cls(**criteria)

    def as_dict(self) -> dict[str, str]:
        """Return the non-empty criteria as JSON values."""
        return {
            name: _as_criterion(value)
            for name, value in vars(self).items()
            if value is not None and value != () and (value != "" or name == "value")
        }

    @property
    def is_everything(self) -> bool:
        return not self.as_dict()

    @property
    def needs_payload(self) -> bool:
        """True if a criterion is about the payload, so that whole letters have to be read."""
        return bool(self.q or self.field)

    @property
    def uses_index(self) -> bool:
        """True if a criterion is about indexed fields, so that fewer letters have to be read."""
        return not dataclasses.replace(self, q="", field="", value=None).is_everything

    def matches(self, entry: LetterEntry) -> bool:
        """Return True if the part of the letter that was read meets the criteria.

        The fingerprint is not checked here: the index has selected candidates by fingerprint.
        Hidden values never match, since searches could be used to guess them.
        """
        if self.ids and entry.id not in self.ids:
            return False
        if not (self._matches_error(entry) and self._matches_time(entry)):
            return False
        if not self.needs_payload:
            return True
        if not self._matches_payload(entry):
            return False
        # Only fields that can match are redacted, as the others may be large.
        relevant = tuple(pair for pair in entry.pairs if self._is_relevant(*pair))
        redacted = configured_redaction().redact_entry(LetterEntry(entry.id, relevant))
        return self._matches_payload(redacted)

    def _is_relevant(self, name: bytes, value: bytes) -> bool:
        path = self.field.encode(errors="replace")
        is_on_path = bool(path) and (path == name or path.startswith(name + b"."))
        return is_on_path or bool(self.q and _contains_text([(name, value)], self.q))

    def _matches_payload(self, entry: LetterEntry) -> bool:
        if self.q and not _contains_text(entry.pairs, self.q):
            return False
        # Text is compared as it is, any other value as JSON.
        return not self.field or any(
            self.value is None or _as_text(one) == self.value
            for one in values_at(entry, self.field)
        )

    def _matches_error(self, entry: LetterEntry) -> bool:
        redaction = configured_redaction()
        error_type = redaction.error_type(entry)[: fingerprints.MAX_TYPE_LENGTH]
        if self.error_type and error_type != self.error_type:
            return False
        if not self.error or redaction.fingerprint(entry).digest == self.error:
            return True
        error = redaction.error(entry)[: fingerprints.MAX_ERROR_LENGTH]
        text = self.error.lower()
        return text in error_type.lower() or text in error.lower()

    def _matches_time(self, entry: LetterEntry) -> bool:
        if self.before is None and self.after is None:
            return True
        at = entry.plausible_failed_at
        if at is None or (self.after is not None and at < self.after):
            return False
        return self.before is None or at < self.before


def values_at(entry: LetterEntry, path: str) -> Iterator[Any]:
    """Yield the letter's values at a dotted path: bytes of a field, or values in a field's JSON.

    There may be several, as field names may contain dots, and may repeat.
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


def _contains_text(pairs: Pairs, text: str) -> bool:
    lowered = text.lower()
    return any(
        lowered in to_text(part).lower() or lowered in _unescape_json(part)
        for pair in pairs
        for part in pair
    )


def _unescape_json(value: bytes) -> str:
    r"""Return lower-case JSON with its escapes (`\uac00`) resolved, or "" if it has no escapes."""
    if b"\\" not in value:
        return ""
    parsed = _parse_json(value)
    return "" if parsed is _NOTHING else _to_json(parsed).lower()


def _value_inside(value: Any, parts: list[str]) -> Any:
    """Return the value at a path in JSON; strings on the path are parsed as JSON."""
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


def describe_criteria(criteria: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the criteria of a letter filter as labels and texts; selected letters are counted."""
    found = []
    for name, value in criteria.items():
        if name == IDS:
            count = value.count(",") + 1
            value = f"{count:,} letter{'' if count == 1 else 's'}"
        found.append((LABELS.get(name, name), value))
    return found


def _to_json(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:
        return ""


def _as_criterion(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(value)
    return timestamp(value) if isinstance(value, datetime) else str(value)


def _validate_criterion(name: str, value: Any) -> Any:
    if name == IDS:
        return _parse_ids(value)
    if name in MOMENTS:
        return _parse_moment(value)
    if name not in TEXTS:
        raise ValueError("Unknown filter.")
    if not isinstance(value, str):
        raise ValueError("Must be text.")
    if len(value) > MAX_FILTER_LENGTH:
        raise ValueError(f"At most {MAX_FILTER_LENGTH} characters.")
    if any(each == "\x00" or "\ud800" <= each <= "\udfff" for each in value):
        raise ValueError("Must be text.")
    if name == "field" and value.count(".") > MAX_DEPTH:
        raise ValueError(f"The path can have at most {MAX_DEPTH} parts.")
    return value


def _parse_ids(value: Any) -> tuple[str, ...]:
    """Return the entry ids in a text with commas, in stream order."""
    wanted = value.split(",") if isinstance(value, str) else value
    if not isinstance(wanted, list | tuple) or not all(isinstance(one, str) for one in wanted):
        raise ValueError("Must be ids separated by commas.")
    if len(wanted) > MAX_IDS:
        raise ValueError(f"At most {MAX_IDS} ids.")
    try:
        positions = sorted({ids.to_position(one.strip()) for one in wanted if one.strip()})
    except NotFound as error:
        raise ValueError("Must be letter ids, such as 1700000000000-0.") from error
    return tuple(ids.to_entry_id(one) for one in positions)


def _parse_moment(value: Any) -> datetime:
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    except (TypeError, ValueError) as error:
        raise ValueError("Must be a time, such as 2026-01-31T09:00:00Z.") from error
    try:
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError as error:
        raise ValueError("This time is out of range.") from error


_NOTHING = object()
