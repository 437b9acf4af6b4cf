"""What of a payload is for nobody to see: values under keys that the installation hides. Pure.

It works on the text as it stands instead of reading it as JSON: the beginning of a long value, JSON
inside JSON, Python's way of writing a dictionary and what has one wrong byte in it are no JSON,
and have secrets all the same. What is not hidden stays as it was, byte for byte.
"""

import functools
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from breakers.dead_letters import configured
from breakers.dead_letters.letters.entries import ERROR, Entry, text
from breakers.dead_letters.sources import hides

REDACTED = "[redacted]"
_HIDDEN = REDACTED.encode()
# A key in quotes before a colon. Inside a string the quotes have backslashes before them, the more
# the deeper it is. All repetitions are possessive or bounded: the time taken grows with the text.
_KEY = re.compile(
    rb"(?P<slashes>(?<!\\)\\*+)(?P<quote>[\"'])"
    rb"(?P<key>(?:[^\"'\\]|\\++[^\"'\\]){1,200}+)"
    rb"(?=(?P=slashes)(?P=quote)(?P<colon>\s{0,1000}+:\s{0,1000}+))"
)
_FORM = re.compile(
    rb"(?:(?<=[?&;\s\"'])|\A)(?P<key>[^\s=&?;\"'{}\[\],]{1,200}+)=(?P<value>[^\s&;\"'\\]++)"
)
_SCALAR = re.compile(rb"[^\s,}\]\"'\\]*+")
_OPENING, _CLOSING = b"{[(", b"}])"


@dataclass(frozen=True)
class Redaction:
    """Takes out what is under keys that `hides` says yes to."""

    hides: Callable[[str], bool]
    _known: dict[bytes, bool] = field(default_factory=dict, compare=False, repr=False)

    def entry(self, entry: Entry) -> Entry:
        """The same entry without what is hidden. Its `sizes` tell only of values of which the
        beginning was read, and which are not hidden wholly, that they are longer."""
        pairs = tuple((name, self.value(name, value)) for name, value in entry.pairs)
        true = entry.sizes or tuple(len(value) for _, value in entry.pairs)
        sizes = tuple(
            size if size > len(old) and new != _HIDDEN else len(new)
            for size, (_, old), (_, new) in zip(true, entry.pairs, pairs, strict=True)
        )
        return replace(entry, pairs=pairs, sizes=sizes)

    def error(self, entry: Entry) -> str:
        """What went wrong, by the entry itself."""
        return text(self.within(entry.value(ERROR) or b""))

    def value(self, name: bytes, value: bytes) -> bytes:
        """The value of a field of this name."""
        return _HIDDEN if self.is_hidden(name) else self.within(value)

    def within(self, value: bytes) -> bytes:
        """A text without the values under hidden keys in it."""
        if b":" not in value and b"=" not in value:
            return value
        pieces, at = [], 0
        for begin, end, instead in self._found(value):
            pieces += [value[at:begin], instead]
            at = end
        return b"".join([*pieces, value[at:]]) if pieces else value

    def is_hidden(self, key: bytes) -> bool:
        """Whether what is under this key is hidden; of `user.password` also as `password`."""
        known = self._known.get(key)
        if known is None:
            whole = text(key)
            last = re.split(r"[.:/\s]", whole)[-1]
            known = self.hides(whole) or (bool(last) and self.hides(last))
            if len(self._known) < 10_000:
                self._known[key] = known
        return known

    def _found(self, value: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Where hidden values are, in order, and what stands there instead."""
        at = 0
        while (key := _KEY.search(value, at)) is not None:
            begin = key.end() + len(key["slashes"]) + 1 + len(key["colon"])
            if not self.is_hidden(_plain(key["key"])):
                at = key.end()
                continue
            yield from self._in_form(value, at, key.start())
            quote = key["slashes"] + key["quote"]
            at = _end_of_value(value, begin, key["quote"], len(key["slashes"]))
            yield begin, at, quote + _HIDDEN + quote
        yield from self._in_form(value, at, len(value))

    def _in_form(self, value: bytes, begin: int, end: int) -> Iterator[tuple[int, int, bytes]]:
        """Those of `name=value&name=value`, and of headers and settings written like it."""
        for found in _FORM.finditer(value, begin, end):
            if self.is_hidden(found["key"]):
                yield found.start("value"), found.end("value"), _HIDDEN


def configured_redaction() -> Redaction:
    """As this installation hides."""
    return _hiding(tuple(configured.sources().hidden_keys))


@functools.lru_cache(maxsize=4)
def _hiding(keys: tuple[str, ...]) -> Redaction:
    """Kept, with what it has learned of keys."""
    return Redaction(functools.partial(hides, keys))


def _plain(key: bytes) -> bytes:
    """A key without what JSON escapes in it."""
    if b"\\" not in key:
        return key
    try:
        return str(json.loads(b'"' + re.sub(rb"\\+", rb"\\", key) + b'"')).encode()
    except (ValueError, UnicodeError):
        return key


def _end_of_value(value: bytes, begin: int, quote: bytes, slashes: int) -> int:
    """Where the value that begins there ends; the end of the text if it does not say."""
    opened = re.compile(rb"\\*+").match(value, begin)
    first = opened.end() if opened else begin
    mark = value[first : first + 1]
    if mark in {b'"', b"'"}:
        return _end_of_string(value, first + 1, mark, slashes)
    if mark and mark in _OPENING:
        return _end_of_nested(value, first, quote, slashes)
    found = _SCALAR.match(value, begin)
    return found.end() if found else begin


def _end_of_string(value: bytes, begin: int, quote: bytes, slashes: int) -> int:
    for found in re.compile(rb"(\\*+)" + quote).finditer(value, begin):
        count = len(found[1])
        if count < slashes:  # The string around it ended.
            return found.start()
        if count % (2 * slashes + 2) == slashes:
            return found.end()
    return len(value)


def _end_of_nested(value: bytes, begin: int, quote: bytes, slashes: int) -> int:
    depth, at = 0, begin
    marks = re.compile(rb"[{}\[\]()]|(\\*+)" + quote)
    while (found := marks.search(value, at)) is not None:
        at = found.end()
        mark = found[0]
        if mark in _OPENING:
            depth += 1
        elif mark in _CLOSING:
            depth -= 1
            if not depth:
                return at
        elif len(found[1]) < slashes:
            return found.start()
        else:
            at = _end_of_string(value, at, quote, slashes)
    return len(value)
