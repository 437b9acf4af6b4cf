"""Strict parser of pushed bodies, fast enough for ten thousand points. Pure.

Valid points with only the usual fields take a fast path. Others are parsed field by field, with an
error for each invalid field.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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

Errors = dict[str, list[str]]
Parser = Callable[[Any], Any]


class Point(NamedTuple):
    """One pushed value: cumulative counters of an `slo`, or a histogram of a service's `metric`.

    `at` is the time of the value; None means the time of receipt.
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


class Deltas(NamedTuple):
    """A pushed batch of deltas; `batch_id` is unique among the batches of a sender."""

    batch_id: str
    deltas: list[Delta]


@dataclass
class RefusedEntries:
    """Refused points or deltas of a request: index mapped to the invalid field and the reason."""

    reasons: dict[int, tuple[str, str]] = field(default_factory=dict)

    def add(self, index: int, name: str, why: str) -> None:
        self.reasons[index] = name, why

    def to_documents(self) -> list[dict[str, Any]]:
        return [{"index": index, "error": why} for index, (_, why) in sorted(self.reasons.items())]

    def require_some(self, what: str, count: int) -> None:
        """Raise :class:`InvalidInput` if all `count` entries of the list `what` are refused."""
        if count and len(self.reasons) == count:
            some = sorted(self.reasons.items())[:MAX_ERRORS]
            raise InvalidInput({f"{what}[{i}].{name}": [why] for i, (name, why) in some})


def parse_body(document: Mapping[str, Any]) -> list[Point] | Deltas:
    """Parse a request body. Raise :class:`InvalidInput` naming each invalid field."""
    errors: Errors = {}
    result: list[Point] | Deltas
    if "deltas" in document and "points" not in document:
        batch = _parse_fields(document, _BATCH, "", errors)
        if document.get("batch_id") is None:
            errors["batch_id"] = ["Is required."]
        deltas = _list_entries(document, "deltas", errors)
        parsed = [_parse_delta(one, index, errors) for index, one in deltas]
        result = Deltas(batch.get("batch_id", ""), [one for one in parsed if one])
    else:
        if "deltas" in document or "batch_id" in document:
            errors["points"] = ["Send either points, or deltas with a batch_id."]
        points = _list_entries(document, "points", errors)
        moments: Moments = {}
        # The value for an invalid point does not matter: its errors refuse the whole body.
        result = [
            _parse_plain_point(one, moments) or _parse_any_point(one, index, errors)
            for index, one in points
        ]
    if errors:
        raise InvalidInput(dict(list(errors.items())[:MAX_ERRORS]))
    return result


def _list_entries(
    document: Mapping[str, Any], name: str, errors: Errors
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


def _parse_any_point(entry: Any, index: int, errors: Errors) -> Point:
    prefix = f"points[{index}]."
    fields = _parse_entry(entry, _POINT, prefix, errors)
    if fields is None:
        return Point()
    is_histogram = "metric" in fields or "service" in fields
    required = {"metric", "service", "buckets"} if is_histogram else {"slo"}
    if "buckets" not in fields and not is_histogram:
        required |= {"good", "total"}
    conflicting = {"slo"} if is_histogram else set()
    if "buckets" in entry:
        conflicting |= {"good", "total"}
    for name in sorted(conflicting & fields.keys()):
        errors.setdefault(f"{prefix}{name}", [_CONFLICTS[name]])
    _check_fields(fields, required, prefix, errors)
    return Point(**fields)


def _parse_delta(entry: Any, index: int, errors: Errors) -> Delta | None:
    prefix = f"deltas[{index}]."
    fields = _parse_entry(entry, _DELTA, prefix, errors)
    required = {"slo", "good", "total"}
    if fields is None or not _check_fields(fields, required, prefix, errors):
        return None
    return Delta(**fields)


def _parse_entry(
    entry: Any, known: Mapping[str, Parser], prefix: str, errors: Errors
) -> dict[str, Any] | None:
    """Return the valid fields of a point or delta; add errors for the others.

    None if the entry is not an object, or if there are `MAX_ERRORS` errors already.
    """
    if len(errors) >= MAX_ERRORS:
        return None
    if not isinstance(entry, dict):
        errors[prefix.removesuffix(".")] = ["Must be an object."]
        return None
    for name in entry.keys() - known.keys():
        if meant := get_close_matches(name.replace("-", "_"), known, n=1, cutoff=0.8):
            errors[f"{prefix}{name}"] = [f"Unknown; did you mean {meant[0]}?"]
    return _parse_fields(entry, known, prefix, errors)


def _parse_fields(
    entry: Mapping[str, Any], known: Mapping[str, Parser], prefix: str, errors: Errors
) -> dict[str, Any]:
    result = {}
    for name, parse in known.items():
        value = entry.get(name)
        if value is None:
            continue
        try:
            result[name] = parse(value)
        except ValueError as error:
            errors[f"{prefix}{name}"] = [str(error)]
    return result


def _check_fields(
    fields: Mapping[str, Any], required: set[str], prefix: str, errors: Errors
) -> bool:
    """Add errors for missing fields, and for good above total; return True if none is missing."""
    missing = sorted(required - fields.keys())
    for name in missing:
        errors.setdefault(f"{prefix}{name}", ["Is required."])
    if "good" in fields and "total" in fields and fields["good"] > fields["total"]:
        errors.setdefault(f"{prefix}good", ["Must not be more than total."])
    return not missing


_CONFLICTS = {
    "slo": "Set either `slo`, or `metric` and `service`.",
    "good": "Set either `good` and `total`, or `buckets`.",
    "total": "Set either `good` and `total`, or `buckets`.",
}
_BATCH: Mapping[str, Parser] = {
    "batch_id": field_parsers.text_parser(MAX_SOURCE_LENGTH, empty=False)
}
_DELTA: Mapping[str, Parser] = {
    "slo": field_parsers.text_parser(MAX_NAME_LENGTH, empty=False),
    "good": field_parsers.parse_count,
    "total": field_parsers.parse_count,
    "source": field_parsers.text_parser(MAX_SOURCE_LENGTH),
    "at": parse_moment,
}
_POINT: Mapping[str, Parser] = {
    **_DELTA,
    "boot": field_parsers.parse_boot,
    "started_at": parse_moment,
    "metric": field_parsers.pattern_parser(
        _METRIC, "Must be 1 to 120 letters, digits, `.`, `_` or `-`."
    ),
    "service": field_parsers.pattern_parser(
        _SERVICE, "Must be 1 to 60 lower-case letters, digits and hyphens."
    ),
    "buckets": field_parsers.parse_buckets,
}
