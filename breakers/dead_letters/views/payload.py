"""What an entry says, made fit for a page: text as text, JSON laid out, everything else as bytes.

Whatever is in it: nothing here is longer than a page bears, and no character plays tricks with it.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from breakers.dead_letters.letters import presentation, redaction
from breakers.dead_letters.letters.entries import METADATA, RETRY_COUNT, RETRY_OF, Entry, text
from breakers.dead_letters.redis_servers.reader import Limits

SHOWN = Limits(value_bytes=64 * 1024, fields=200, entries=1)
"""Of one letter on its page; the rest is told by its size, and whole in the export."""
DEEPEST = 60
BYTES_SHOWN = 512
OURS = METADATA | {RETRY_OF, RETRY_COUNT}
# What would turn lines around, or can't be seen at all: written out.
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)

_WRITTEN_OUT = re.compile(r"\\u([0-9a-f]{4})")


@dataclass(frozen=True)
class Shown:
    """A field as a page shows it. `kind` is `json`, `text`, `bytes` or `empty`; `size_bytes` is the
    true length; `is_cut` if the page has only the beginning, `is_hidden` if any of it is hidden."""

    index: int
    name: str
    text: str
    kind: str
    size_bytes: int
    is_cut: bool
    is_hidden: bool
    is_ours: bool


@dataclass(frozen=True)
class Payload:
    """The fields of an entry, the message's own apart from what dead-lettering added."""

    fields: tuple[Shown, ...]
    left_out: int
    as_json: str

    @property
    def own(self) -> list[Shown]:
        return [one for one in self.fields if not one.is_ours]

    @property
    def added(self) -> list[Shown]:
        return [one for one in self.fields if one.is_ours]

    @property
    def hides(self) -> bool:
        return any(one.is_hidden for one in self.fields)

    @property
    def is_cut(self) -> bool:
        return self.left_out > 0 or any(one.is_cut for one in self.fields)


def of(entry: Entry, *, revealed: bool = False) -> Payload:
    """What a page shows of the entry; with what is hidden only where it was revealed."""
    seen = entry if revealed else redaction.configured_redaction().entry(entry)
    sizes = entry.sizes or tuple(len(value) for _, value in entry.pairs)
    fields = tuple(
        _shown(index, name, value, sizes[index]) for index, (name, value) in enumerate(seen.pairs)
    )
    total = max(entry.fields_total, len(entry.pairs))
    return Payload(fields, total - len(fields), _as_json(seen))


def brief(entry: Entry, most: int = 3) -> list[tuple[str, str]]:
    """The first few fields, a line each, of an entry without what is hidden."""
    own = [(name, value) for name, value in entry.pairs if name not in OURS][:most]
    return [(plain(text(name[:200]))[:60], plain(text(value[:600]))[:160]) for name, value in own]


def plain(said: str) -> str:
    """Text without characters that can't be seen or turn lines around: those are written out."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", said)


def has_unseen(said: str) -> bool:
    """Whether :func:`plain` would write something of it out."""
    return _UNSEEN.search(said) is not None


def unplain(said: str) -> str:
    """What :func:`plain` wrote out as characters again; anything else stays as it is."""
    return _WRITTEN_OUT.sub(_character, said)


def laid_out(value: bytes | str) -> str | None:
    """JSON objects and lists on lines of their own, numbers as they were written; None if it is
    none, or too deep to be read by anybody."""
    if value[:64].lstrip()[:1] not in (b"{", b"[", "{", "["):
        return None
    try:
        return "".join(_lines(parsed(value), 0))
    except (ValueError, RecursionError):
        return None


def parsed(value: bytes | str) -> Any:
    """JSON as it was written: numbers digit by digit, members in order. Raises `ValueError`,
    `RecursionError`."""
    return json.loads(
        value, parse_int=_Raw, parse_float=_Raw, parse_constant=_no_json, object_pairs_hook=_Members
    )


def compact(value: str) -> str:
    """The same JSON without white space around its parts. Raises as :func:`parsed`."""
    return written(parsed(value))


def written(tree: Any) -> str:
    """What :func:`parsed` gave, as JSON in one line."""
    return "".join(_lines(tree, None))


def is_object(tree: Any) -> bool:
    return isinstance(tree, _Members)


def _character(found: re.Match[str]) -> str:
    character = chr(int(found[1], 16))
    return character if has_unseen(character) else found[0]


def _shown(index: int, name: bytes, value: bytes, size: int) -> Shown:
    # A value that was hidden is shorter than it was, and still whole.
    hidden = redaction.REDACTED.encode() in value
    is_cut = size > len(value) and not (hidden and len(value) < SHOWN.value_bytes)
    kind, said = _read(value, is_cut)
    return Shown(
        index=index,
        name=plain(text(name)) or "(no name)",
        text=said,
        kind=kind,
        size_bytes=size,
        is_cut=is_cut or (kind == "bytes" and len(value) > BYTES_SHOWN),
        is_hidden=hidden,
        is_ours=name in OURS,
    )


def _read(value: bytes, is_cut: bool) -> tuple[str, str]:
    if not value:
        return "empty", ""
    if not is_cut and (told := laid_out(value)) is not None:
        return "json", plain(told)
    if presentation.is_text(value) or (is_cut and presentation.is_text(_to_last_character(value))):
        return "text", plain(text(_to_last_character(value) if is_cut else value))
    return "bytes", _dump(value[:BYTES_SHOWN])


def _to_last_character(value: bytes) -> bytes:
    """Without the beginning of a character that was cut through."""
    return value.decode("utf-8", "ignore").encode() if len(value) < 4 else _cut(value)


def _cut(value: bytes) -> bytes:
    for back in range(1, 4):
        if value[-back] >= 0xC0:
            return value[:-back]
        if value[-back] < 0x80:
            break
    return value


def _dump(value: bytes) -> str:
    """Bytes as `hexdump -C` shows them."""
    lines = []
    for at in range(0, len(value), 16):
        row = value[at : at + 16]
        seen = "".join(chr(one) if 32 <= one < 127 else "·" for one in row)
        lines.append(f"{at:06x}  {row.hex(' '):<47}  {seen}")
    return "\n".join(lines)


class _Raw(str):
    """A number as it was written: no digit of it is lost by being read."""


class _Members(list[Any]):
    """An object's members in order, also those whose name comes twice."""


def _no_json(said: str) -> Any:
    raise ValueError(f"{said} is no JSON.")


def _lines(value: Any, depth: int | None) -> Iterator[str]:
    """JSON in pieces, laid out below a depth; None is for all of it in one line."""
    if depth is not None and depth > DEEPEST:
        raise RecursionError
    if isinstance(value, _Raw):
        yield str(value)
    elif isinstance(value, _Members):
        colon = ":" if depth is None else ": "
        items = [(f"{_quoted(name)}{colon}", member) for name, member in value]
        yield from _nested("{}", items, depth)
    elif isinstance(value, list):
        yield from _nested("[]", [("", member) for member in value], depth)
    else:
        yield _quoted(value)


def _nested(marks: str, items: list[tuple[str, Any]], depth: int | None) -> Iterator[str]:
    if not items:
        yield marks
        return
    inside = None if depth is None else depth + 1
    pad = "" if depth is None else "\n" + "  " * (depth + 1)
    yield marks[0]
    for at, (before, member) in enumerate(items):
        yield f"{',' if at else ''}{pad}{before}"
        yield from _lines(member, inside)
    yield f"{'' if depth is None else chr(10) + '  ' * depth}{marks[1]}"


def _quoted(value: Any) -> str:
    try:
        said = json.dumps(value, ensure_ascii=False)
        said.encode()
    except UnicodeEncodeError:  # Half of a pair of surrogates.
        said = json.dumps(value)
    return said


def _as_json(entry: Entry) -> str:
    """The entry as JSON, as the API gives it, to be copied."""
    fields, _ = presentation.fields(entry.pairs, sizes=entry.sizes, measure=presentation.FULLY)
    return plain(json.dumps({"id": entry.id, "fields": fields}, ensure_ascii=False, indent=2))
