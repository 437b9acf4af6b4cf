"""Strict parser of pushed bodies, fast enough for ten thousand points. Pure.

Points that are valid and have only the usual fields take a fast path; other points are parsed field
by field, with an error for each invalid field.
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from difflib import get_close_matches
from typing import Any, NamedTuple

from controlplane.core.errors import InvalidInput
from slo.arithmetic.boots import PRESENCE_BOOT

from . import field_parsers
from .field_parsers import MAX_NUMBER, MAX_SOURCE_LENGTH, NUMBERS, Buckets, Moments, parse_moment

MAX_ENTRIES = 10_000
MAX_ERRORS = 20
MAX_NAME_LENGTH = 1000
_SERVICE = re.compile(r"[a-z0-9-]{1,60}", re.ASCII)
_METRIC = re.compile(r"[A-Za-z0-9._-]{1,120}", re.ASCII)


class Point(NamedTuple):
    """Cumulative counters of an `slo`, or a histogram of a `metric` of a `service`.

    `at` is the time of the values, None for the time of receipt.
    """

    slo: str = ""
    good: float = 0.0
    total: float = 0.0
    source: str = ""
    boot: str = ""
    at: datetime | None = None
    started_at: datetime | None = None
    metric: str = ""
    service: str = ""
    buckets: Buckets | None = None


class Delta(NamedTuple):
    """Events of an SLO since the previous delta of the same source."""

    slo: str
    good: float
    total: float
    source: str = ""
    at: datetime | None = None


class Points(NamedTuple):
    points: list[Point]


class Deltas(NamedTuple):
    """A batch of deltas; `batch_id` is unique among the batches of a sender."""

    batch_id: str
    deltas: list[Delta]


def parse_body(document: Mapping[str, Any]) -> Points | Deltas:
    """Parse a request body. Raise :class:`InvalidInput` naming each invalid field."""
    errors: dict[str, list[str]] = {}
    moments: Moments = {}
    result: Points | Deltas
    if "deltas" in document and "points" not in document:
        batch_id = _parse_field(
            field_parsers.text_parser(MAX_SOURCE_LENGTH, empty=False),
            document,
            "batch_id",
            "",
            errors,
            True,
        )
        deltas = _list_entries(document, "deltas", errors)
        parsed = [_parse_delta(one, index, errors) for index, one in deltas]
        result = Deltas(batch_id or "", [one for one in parsed if one])
    else:
        if "deltas" in document or "batch_id" in document:
            errors["points"] = ["Send either points, or deltas with a batch_id."]
        points = _list_entries(document, "points", errors)
        # The value for an invalid point does not matter: its errors refuse the whole body.
        result = Points(
            [
                _parse_plain_point(one, moments) or _parse_any_point(one, index, errors)
                for index, one in points
            ]
        )
    if errors:
        raise InvalidInput(dict(list(errors.items())[:MAX_ERRORS]))
    return result


def _list_entries(
    document: Mapping[str, Any], name: str, errors: dict[str, list[str]]
) -> "enumerate[Any] | tuple[()]":
    entries = document.get(name)
    if not isinstance(entries, list) or len(entries) > MAX_ENTRIES:
        errors[name] = [f"Must be a list of at most {MAX_ENTRIES:,} objects."]
        return ()
    return enumerate(entries)


_PLAIN_FIELDS = frozenset({"slo", "good", "total", "source", "boot", "at", "started_at"})


def _parse_plain_point(entry: Any, moments: Moments) -> Point | None:
    """Return the point if it is valid and has only the usual fields, else None."""
    if type(entry) is not dict or not entry.keys() <= _PLAIN_FIELDS:
        return None
    slo, good, total = entry.get("slo"), entry.get("good"), entry.get("total")
    source, boot = entry.get("source", ""), entry.get("boot", "")
    at, started = entry.get("at"), entry.get("started_at")
    if not (type(slo) is str and type(source) is str and type(boot) is str):
        return None
    if type(good) not in NUMBERS or type(total) not in NUMBERS:
        return None
    if not 0 <= good <= total <= MAX_NUMBER:  # type: ignore[operator]
        return None
    if not 0 < len(slo) <= MAX_NAME_LENGTH or len(source) > MAX_SOURCE_LENGTH:
        return None
    if len(boot) > MAX_SOURCE_LENGTH or boot == PRESENCE_BOOT or "\0" in slo + source + boot:
        return None
    try:
        at = None if at is None else parse_moment(at, moments)
        started = None if started is None else parse_moment(started, moments)
    except ValueError:
        return None
    return Point(slo, good, total, source, boot, at, started)  # type: ignore[arg-type]


def _parse_any_point(entry: Any, index: int, errors: dict[str, list[str]]) -> Point:
    path = f"points[{index}]"
    if len(errors) >= MAX_ERRORS or not _is_object(entry, path, _POINT, errors):
        return Point()
    fields = _parse_fields(entry, _POINT, path, errors)
    is_histogram = "metric" in fields or "service" in fields
    required_names = {"metric", "service", "buckets"} if is_histogram else {"slo"}
    if "buckets" not in fields and not is_histogram:
        required_names |= {"good", "total"}
    for name in sorted(required_names - fields.keys()):
        errors.setdefault(f"{path}.{name}", ["Is required."])
    conflicting = {"slo"} if is_histogram else set()
    if "buckets" in entry:
        conflicting |= {"good", "total"}
    for name in sorted(conflicting & fields.keys()):
        errors.setdefault(f"{path}.{name}", [_CONFLICTS[name]])
    _check_good(fields, path, errors)
    return Point(**fields)


def _parse_delta(entry: Any, index: int, errors: dict[str, list[str]]) -> Delta | None:
    path = f"deltas[{index}]"
    if len(errors) >= MAX_ERRORS or not _is_object(entry, path, _DELTA, errors):
        return None
    fields = _parse_fields(entry, _DELTA, path, errors)
    missing = {"slo", "good", "total"} - fields.keys()
    for name in sorted(missing):
        errors.setdefault(f"{path}.{name}", ["Is required."])
    _check_good(fields, path, errors)
    return None if missing else Delta(**fields)


def _is_object(entry: Any, path: str, known: Mapping[str, Any], errors: dict[str, Any]) -> bool:
    if not isinstance(entry, dict):
        errors[path] = ["Must be an object."]
        return False
    for name in entry.keys() - known.keys():
        if meant := get_close_matches(name.replace("-", "_"), known, n=1, cutoff=0.8):
            errors[f"{path}.{name}"] = [f"Unknown; did you mean {meant[0]}?"]
    return True


def _parse_fields(
    entry: Mapping[str, Any],
    known: Mapping[str, Callable[[Any], Any]],
    path: str,
    errors: dict[str, list[str]],
) -> dict[str, Any]:
    result = {}
    for name, check in known.items():
        value = entry.get(name)
        if value is not None:
            parsed = _parse_field(check, entry, name, path, errors)
            if parsed is not None:
                result[name] = parsed
    return result


def _parse_field(
    check: Callable[[Any], Any],
    entry: Mapping[str, Any],
    name: str,
    path: str,
    errors: dict[str, list[str]],
    required: bool = False,
) -> Any:
    where = f"{path}.{name}" if path else name
    value = entry.get(name)
    if value is None:
        if required:
            errors[where] = ["Is required."]
        return None
    try:
        return check(value)
    except ValueError as error:
        errors[where] = [str(error)]
        return None


def _check_good(fields: Mapping[str, Any], path: str, errors: dict[str, list[str]]) -> None:
    good, total = fields.get("good"), fields.get("total")
    if good is not None and total is not None and good > total:
        errors.setdefault(f"{path}.good", ["Must not be more than total."])


_CONFLICTS = {
    "slo": "Either an SLO, or a metric of a service.",
    "good": "Either good and total, or buckets.",
    "total": "Either good and total, or buckets.",
}
_DELTA: Mapping[str, Callable[[Any], Any]] = {
    "slo": field_parsers.text_parser(MAX_NAME_LENGTH, empty=False),
    "good": field_parsers.parse_count,
    "total": field_parsers.parse_count,
    "source": field_parsers.text_parser(MAX_SOURCE_LENGTH),
    "at": field_parsers.parse_time,
}
_POINT: Mapping[str, Callable[[Any], Any]] = {
    **_DELTA,
    "boot": field_parsers.parse_boot,
    "started_at": field_parsers.parse_time,
    "metric": field_parsers.pattern_parser(
        _METRIC, "Must be 1 to 120 letters, digits, `.`, `_` or `-`."
    ),
    "service": field_parsers.pattern_parser(
        _SERVICE, "Must be 1 to 60 lower-case letters, digits and hyphens."
    ),
    "buckets": field_parsers.parse_buckets,
}
