"""Payloads formatted for a page: text, indented JSON, or a hex dump.

Everything is truncated to page limits, and invisible or direction-changing characters are escaped.
"""

import json
import re
from typing import Any

from breakers.dead_letters.letters import lossless_json, presentation, redaction
from breakers.dead_letters.letters.entries import RESERVED_NAMES, LetterEntry, ReadLimits, to_text

PAGE_LIMITS = ReadLimits(value_bytes=64 * 1024, fields=200, entries=1)
"""Read limits of a letter's page; the export contains the rest."""
BYTES_SHOWN = 512
# Characters that are invisible or change the direction of text.
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)

_WRITTEN_OUT = re.compile(r"\\u([0-9a-f]{4})")


def build_payload(entry: LetterEntry, *, revealed: bool = False) -> dict[str, Any]:
    """Return an entry's fields for templates: those of the message (`own`), and metadata (`added`).

    Hidden values are redacted unless `revealed`; `hides` is True if there are any. `left_out` is
    the number of fields that were not read, `as_json` the whole payload as text.
    """
    visible = entry if revealed else redaction.configured_redaction().redact_entry(entry)
    sizes = entry.sizes or tuple(len(value) for _, value in entry.pairs)
    fields = [
        _display_field(index, name, value, sizes[index])
        for index, (name, value) in enumerate(visible.pairs)
    ]
    left_out = max(entry.fields_total, len(entry.pairs)) - len(fields)
    shown, _ = presentation.display_fields(
        visible.pairs, sizes=visible.sizes, measure=presentation.DETAIL_LIMITS
    )
    as_json = json.dumps({"id": entry.id, "fields": shown}, ensure_ascii=False, indent=2)
    return {
        "own": [one for one in fields if not one["is_metadata"]],
        "added": [one for one in fields if one["is_metadata"]],
        "hides": any(one["is_hidden"] for one in fields),
        "is_cut": left_out > 0 or any(one["is_cut"] for one in fields),
        "left_out": left_out,
        "as_json": escape_unseen(as_json),
    }


def summarize_fields(entry: LetterEntry) -> list[tuple[str, str]]:
    """Return names and values of a redacted entry's first three fields, truncated."""
    own = [(name, value) for name, value in entry.pairs if name not in RESERVED_NAMES][:3]
    return [
        (escape_unseen(to_text(name[:200]))[:60], escape_unseen(to_text(value[:600]))[:160])
        for name, value in own
    ]


def escape_unseen(text: str) -> str:
    r"""Return the text with invisible and direction-changing characters as `\u200b` escapes."""
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def has_unseen(text: str) -> bool:
    """Return True if the text has characters that :func:`escape_unseen` would escape."""
    return _UNSEEN.search(text) is not None


def unescape_unseen(text: str) -> str:
    """Return the text with the escapes of :func:`escape_unseen` resolved, and no others."""

    def unescape(match: re.Match[str]) -> str:
        character = chr(int(match[1], 16))
        return character if has_unseen(character) else match[0]

    return _WRITTEN_OUT.sub(unescape, text)


def _display_field(index: int, name: bytes, value: bytes, size: int) -> dict[str, Any]:
    """Return the template context of one field; `kind` is `json`, `text`, `bytes` or `empty`."""
    # A redacted value is shorter than the original, but not truncated.
    is_hidden = redaction.REDACTED.encode() in value
    is_cut = size > len(value) and not (is_hidden and len(value) < PAGE_LIMITS.value_bytes)
    kind, text = _format_value(value, is_cut)
    return {
        "index": index,
        "name": escape_unseen(to_text(name)) or "(no name)",
        "text": text,
        "kind": kind,
        "size_bytes": size,
        "is_cut": is_cut or (kind == "bytes" and len(value) > BYTES_SHOWN),
        "is_hidden": is_hidden,
        "is_metadata": name in RESERVED_NAMES,
    }


def _format_value(value: bytes, is_cut: bool) -> tuple[str, str]:
    if not value:
        return "empty", ""
    if not is_cut and (formatted := lossless_json.format_json(value)) is not None:
        return "json", escape_unseen(formatted)
    plain = presentation.decode_text(value, is_cut=is_cut)
    if plain is not None:
        return "text", escape_unseen(plain)
    return "bytes", _format_hexdump(value[:BYTES_SHOWN])


def _format_hexdump(value: bytes) -> str:
    lines = []
    for offset in range(0, len(value), 16):
        row = value[offset : offset + 16]
        text = "".join(chr(one) if 32 <= one < 127 else "·" for one in row)
        lines.append(f"{offset:06x}  {row.hex(' '):<47}  {text}")
    return "\n".join(lines)
