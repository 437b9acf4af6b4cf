"""Formatting of dead letters for the API and pages. Pure.

A value is a string, `{"base64", "bytes"}` if it is binary, or `{"text", "bytes", "truncated":
true}` if it is truncated (`base64` instead of `text` if binary). A repeated name has a list of
values.
"""

import base64
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from controlplane.core.canonical import timestamp_or_none

from . import entries, ids
from .entries import RESERVED_NAMES, LetterEntry, Pairs, ReadLimits, to_text
from .redaction import Redaction, configured_redaction

DisplayValue = str | dict[str, Any]


LIST_LIMITS = ReadLimits(value_bytes=2048, fields=100, total_bytes=1024 * 1024)
"""Limits of each letter in a list."""
DETAIL_LIMITS = ReadLimits(value_bytes=1024 * 1024, fields=10_000, total_bytes=2 * 1024 * 1024)
"""Limits of a single letter."""


def letter_resource(
    entry: LetterEntry,
    *,
    redaction: Redaction | None,
    fingerprint: str = "",
    measure: ReadLimits = LIST_LIMITS,
) -> dict[str, Any]:
    """Return the API resource of a letter; missing metadata is None.

    If `redaction` is None, nothing is hidden. If `fingerprint` is empty, the fingerprint is
    computed. `size_bytes` is the size of the fields that were read.
    """
    shown = truncate_entry(entry, measure)
    shown = shown if redaction is None else redaction.redact_entry(shown)
    fields, is_complete = display_fields(shown.pairs, sizes=shown.sizes, measure=measure)

    def display_metadata(name: bytes) -> str | None:
        value = shown.value(name)
        return None if value is None else to_text(value[: measure.value_bytes])

    return {
        "id": entry.id,
        "fields": fields,
        "error": display_metadata(entries.ERROR),
        "error_type": display_metadata(entries.ERROR_TYPE),
        "fingerprint": fingerprint or configured_redaction().fingerprint(entry).digest,
        "attempts": entry.attempts,
        "failed_at": timestamp_or_none(entry.failed_at),
        "added_at": timestamp_or_none(ids.added_at(entry.position)),
        "group": display_metadata(entries.GROUP),
        "original_id": display_metadata(entries.ORIGINAL_ID),
        "retries": entry.retries,
        "retry_of": display_metadata(entries.RETRY_OF),
        "size_bytes": entry.size_bytes,
        "fields_total": max(entry.fields_total, len(entry.pairs)),
        "truncated": not (is_complete and entry.is_whole),
    }


def display_fields(
    pairs: Pairs, *, sizes: Iterable[int] = (), measure: ReadLimits = LIST_LIMITS
) -> tuple[dict[str, Any], bool]:
    """Return the displayed values by field name, and True if none is truncated or left out.

    `sizes` are the full lengths of values truncated before. The limit of fields does not apply to
    metadata.
    """
    values: dict[str, list[DisplayValue]] = {}
    lengths = tuple(sizes) or tuple(len(given) for _, given in pairs)
    count, is_complete = 0, True
    for (name, given), size in zip(pairs, lengths, strict=True):
        if name not in RESERVED_NAMES:
            count += 1
            if count > measure.fields:
                is_complete = False
                continue
        value = display_value(given, size=size, most=measure.value_bytes)
        if isinstance(value, dict) and value.get("truncated"):
            is_complete = False
        values.setdefault(to_text(name), []).append(value)
    fields = {name: each[0] if len(each) == 1 else each for name, each in values.items()}
    return fields, is_complete


def display_value(
    given: bytes, *, size: int | None = None, most: int = LIST_LIMITS.value_bytes
) -> DisplayValue:
    """Return a value as displayed, with at most `most` bytes of it.

    `size` is its full length if it was truncated before.
    """
    size = max(size or 0, len(given))
    cut = given[:most]
    is_cut = len(cut) < size
    text = decode_text(cut, is_cut=is_cut)
    if text is None:
        encoded = {"base64": base64.b64encode(cut).decode(), "bytes": size}
        return {**encoded, "truncated": True} if is_cut else encoded
    return {"text": text, "bytes": size, "truncated": True} if is_cut else text


def is_text(given: bytes) -> bool:
    """Return True if the value is displayed as text, not as binary."""
    return decode_text(given, is_cut=False) is not None


def truncate_entry(entry: LetterEntry, measure: ReadLimits) -> LetterEntry:
    """Return the entry with its values truncated to the limits, so that less has to be redacted."""
    sizes = entry.sizes or tuple(len(given) for _, given in entry.pairs)
    pairs, left = [], measure.total_bytes
    for name, given in entry.pairs:
        # The metadata is always kept; it is at the end of the entry.
        most = measure.value_bytes if name in RESERVED_NAMES else min(measure.value_bytes, left)
        pairs.append((name, given[:most]))
        left = max(0, left - len(pairs[-1][1]))
    return replace(entry, pairs=tuple(pairs), sizes=sizes)


def decode_text(given: bytes, *, is_cut: bool) -> str | None:
    """Return bytes as text, or None if they are binary; a truncated last character is dropped."""
    if b"\x00" in given:
        return None
    try:
        return given.decode()
    except UnicodeDecodeError as error:
        tail = is_cut and error.reason == "unexpected end of data"
        return given[: error.start].decode() if tail else None
