"""Dead letters as JSON and pages show them. Pure.

A value is a string; `{"base64", "bytes"}` if it is binary; `{"text", "bytes", "truncated": true}`
if it is truncated (or `base64` instead of `text`). A repeated name has a list of values.
"""

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from controlplane.core.canonical import timestamp

from . import entries, ids
from .entries import METADATA, RETRY_COUNT, RETRY_OF, LetterEntry, Pairs, to_text
from .redaction import Redaction, configured_redaction

DisplayValue = str | dict[str, Any]
_OURS = METADATA | {RETRY_OF, RETRY_COUNT}


@dataclass(frozen=True)
class DisplayLimits:
    """Limits of what is shown.

    They are bytes of a value, fields besides the metadata, and bytes of all values.
    """

    value_bytes: int
    fields: int
    total_bytes: int


LIST_LIMITS = DisplayLimits(value_bytes=2048, fields=100, total_bytes=1024 * 1024)
"""Limits of letters in lists."""
DETAIL_LIMITS = DisplayLimits(value_bytes=1024 * 1024, fields=10_000, total_bytes=2 * 1024 * 1024)
"""Limits of a single letter."""
NO_LIMITS = DisplayLimits(value_bytes=2**63, fields=2**63, total_bytes=2**63)


def letter_resource(
    entry: LetterEntry,
    *,
    redaction: Redaction | None,
    fingerprint: str = "",
    measure: DisplayLimits = LIST_LIMITS,
) -> dict[str, Any]:
    """Return an entry as the API shows it; missing metadata is None.

    Without a `redaction` everything is shown. Without a `fingerprint` it is computed. `size_bytes`
    is of all that was read.
    """
    seen = truncate_entry(entry, measure)
    seen = seen if redaction is None else redaction.redact_entry(seen)
    shown, whole = display_fields(seen.pairs, sizes=seen.sizes, measure=measure)
    failed_at, added_at = entry.failed_at, ids.added_at(entry.position)
    return {
        "id": entry.id,
        "fields": shown,
        "error": _display_metadata(seen, entries.ERROR, measure),
        "error_type": _display_metadata(seen, entries.ERROR_TYPE, measure),
        "fingerprint": fingerprint or configured_redaction().fingerprint(entry).digest,
        "attempts": entry.attempts,
        "failed_at": timestamp(failed_at) if failed_at else None,
        "added_at": timestamp(added_at) if added_at else None,
        "group": _display_metadata(seen, entries.GROUP, measure),
        "original_id": _display_metadata(seen, entries.ORIGINAL_ID, measure),
        "retries": entry.retries,
        "retry_of": _display_metadata(seen, RETRY_OF, measure),
        "size_bytes": entry.size_bytes,
        "fields_total": max(entry.fields_total, len(entry.pairs)),
        "truncated": not (whole and entry.is_whole),
    }


def display_fields(
    pairs: Pairs, *, sizes: Iterable[int] = (), measure: DisplayLimits = LIST_LIMITS
) -> tuple[dict[str, Any], bool]:
    """Return the displayed values by name, in order, and True if nothing of `pairs` was left out.

    `sizes` are the true lengths of truncated values. Metadata is shown however many fields there
    are.
    """
    found: dict[str, list[DisplayValue]] = {}
    lengths = tuple(sizes) or tuple(len(given) for _, given in pairs)
    others, whole = 0, True
    for (name, given), size in zip(pairs, lengths, strict=True):
        if name not in _OURS:
            others += 1
            if others > measure.fields:
                whole = False
                continue
        one = display_value(given, size=size, most=measure.value_bytes)
        whole = whole and not (isinstance(one, dict) and one.get("truncated"))
        found.setdefault(to_text(name), []).append(one)
    return {name: each[0] if len(each) == 1 else each for name, each in found.items()}, whole


def display_value(
    given: bytes, *, size: int | None = None, most: int = LIST_LIMITS.value_bytes
) -> DisplayValue:
    """Return a value, whose full length is `size` bytes, as JSON."""
    size = max(size or 0, len(given))
    cut = given[:most]
    is_cut = len(cut) < size
    said = _decode(cut, is_cut=is_cut)
    if said is None:
        coded = {"base64": base64.b64encode(cut).decode(), "bytes": size}
        return {**coded, "truncated": True} if is_cut else coded
    return {"text": said, "bytes": size, "truncated": True} if is_cut else said


def is_text(given: bytes) -> bool:
    """Return True if it is shown as text."""
    return _decode(given, is_cut=False) is not None


def to_plain_text(shown: Any) -> str:
    """Return a displayed value as one line of text; several are joined."""
    if isinstance(shown, list):
        return ", ".join(to_plain_text(one) for one in shown)
    if isinstance(shown, Mapping):
        return str(shown["text"]) if "text" in shown else f"base64:{shown['base64']}"
    return str(shown)


def truncate_entry(entry: LetterEntry, measure: DisplayLimits) -> LetterEntry:
    """Return the entry without what is not shown, so that it need not be redacted."""
    sizes = entry.sizes or tuple(len(given) for _, given in entry.pairs)
    pairs, left = [], measure.total_bytes
    for name, given in entry.pairs:
        # Why it is here is told at any rate; failing adds that last.
        most = measure.value_bytes if name in _OURS else min(measure.value_bytes, left)
        pairs.append((name, given[:most]))
        left = max(0, left - len(pairs[-1][1]))
    return replace(entry, pairs=tuple(pairs), sizes=sizes)


def _display_metadata(entry: LetterEntry, name: bytes, measure: DisplayLimits) -> str | None:
    """Return one of the metadata fields; None if it is missing."""
    given = entry.value(name)
    return None if given is None else to_text(given[: measure.value_bytes])


def _decode(given: bytes, *, is_cut: bool) -> str | None:
    """Return the text, or None if it is binary. A character at the cut may be incomplete."""
    if b"\x00" in given:
        return None
    try:
        return given.decode()
    except UnicodeDecodeError as error:
        tail = is_cut and error.reason == "unexpected end of data"
        return given[: error.start].decode() if tail else None
