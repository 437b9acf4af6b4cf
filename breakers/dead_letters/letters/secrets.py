"""Search for the values under hidden keys (`DLQ_HIDDEN_KEYS`) in text of any format. Pure.

The text is not parsed as JSON, since secrets also occur in truncated values, nested JSON, Python
and Java reprs, form data, headers, and text with invalid bytes.
"""

import json
import re
from collections.abc import Callable, Iterator
from urllib.parse import quote_from_bytes, unquote_to_bytes

REDACTED = b"[redacted]"
Hides = Callable[[bytes], bool]
MAX_DEPTH = 2
"""Maximum nesting of form data or JSON in a form value that is searched."""

# To keep the search linear, repetitions are possessive or anchored by a lookbehind, and a quoted
# key is retried only a few times.
_RUN = rb"(?:[^\"'\\]|\\++[^\"'\\])"
_PLAIN_RUN = rb"(?:[^\"'\\:=,{}\[\]]|\\++[^\"'\\])*+"
_IN_NAME = rb"[^\s=&?;,:\"'\\{}()<>|#]"
_SEPARATOR = rb"\s*+(?:=>|[:=])\s*+"
# A quoted key, or an unquoted name. Quotes inside a string are preceded by backslashes, more of
# them at each level of nesting. A key may contain quotes. The letter of an escaped line end before
# a name (`\nname`) is not part of the name.
_KEY = re.compile(
    rb"(?P<slashes>(?<!\\)\\*+)(?P<quote>[\"'])"
    rb"(?P<key>" + _RUN + rb"++|" + _PLAIN_RUN + rb"(?:\\*+[\"']" + _PLAIN_RUN + rb"){1,3}?)"
    rb"(?=(?P=slashes)(?P=quote)(?P<colon>" + _SEPARATOR + rb"))"
    rb"|(?<!" + _IN_NAME + rb")(?:(?<=\\)[nrt])?(?P<name>" + _IN_NAME + rb"++)"
    rb"(?=(?P<sign>[ \t]*+(?:=>|={1,3}+|:=?+)[ \t]*+))"
)
_HEADER = re.compile(rb"(?:authorization|cookie)\Z", re.IGNORECASE)
_LINE = re.compile(rb"[^\"'\\\r\n]*+(?:\"[^\"\\\r\n]*+\"(?=\s*(?:;|\Z))[^\"'\\\r\n]*+)*+")
_SCALAR = re.compile(rb"[^,}\])\"'\\\r\n]*+")
_WORD = re.compile(rb"(?:[^\s&;\"'\\]|\\++[^\snrt\"'\\])*+")
_ENCODED = re.compile(rb"[^\s&;\"'\\=]*+")
_PREFIX = re.compile(rb"[bBfFrRuU]{1,2}(?=\\*[\"'])|[\w.]{1,100}(?=\()")
_QUOTED = re.compile(rb"(?P<slashes>\\*+)(?P<quote>[\"'])")
_STRING_IS_OVER = re.compile(rb"\\*+[\"']\s*+(?:[}\]]|,\s*+[\"'{\[\d\\]|\Z)")
_BRACKETS = {
    quote: re.compile(rb"[{}\[\]()]|(\\*+)" + quote) for quote in (b'"', b"'")
}  # fmt: skip
_ENDS = {quote: re.compile(rb"(\\*+)" + quote) for quote in (b'"', b"'")}
_NEAR = 200
"""Distance in bytes within which a quote reveals the escaping depth of the text."""
_OPENING, _CLOSING = b"{[(", b"}])"
_ESCAPED = re.compile(rb"(\\++)u00(2[2367bB]|3[aAdD])")


def redact_values(given: bytes, hides: Hides, depth: int = 0) -> bytes:
    """Return the text with `[redacted]` in place of every value under a hidden key."""
    text = _ESCAPED.sub(_unescape_sign, given) if b"\\u00" in given else given
    if b":" not in text and b"=" not in text:
        return given
    pieces, at = [], 0
    for begin, end, instead in _find_hidden(text, hides, depth):
        pieces += [text[at:begin], instead]
        at = end
    return b"".join([*pieces, text[at:]]) if pieces else given


def _find_hidden(value: bytes, hides: Hides, depth: int) -> Iterator[tuple[int, int, bytes]]:
    """Yield begin, end and replacement of each hidden value, in order."""
    if b"%22" not in value and b"%3" not in value:
        depth = MAX_DEPTH  # No form value can be encoded.
    at = 0
    while (key := _KEY.search(value, at)) is not None:
        if key["name"]:
            hidden = _match_name(value, key, hides, depth)
        else:
            hidden = _match_key(value, key, hides)
        at = key.end()
        if hidden is not None:
            yield hidden
            at = max(at, hidden[1])


def _match_key(value: bytes, key: re.Match[bytes], hides: Hides) -> tuple[int, int, bytes] | None:
    """Find a hidden value after a quoted key, as in JSON; return begin, end and replacement."""
    if not hides(_unescape_key(key["key"])):
        return None
    mark = key["slashes"] + key["quote"]
    begin = key.end() + len(mark) + len(key["colon"])
    end = _end_of_value(value, _skip_prefix(value, begin), key["quote"], len(key["slashes"]))
    if end is None:
        scalar = _SCALAR.match(value, begin)
        end = begin + len(scalar[0].rstrip()) if scalar else begin
    return begin, end, mark + REDACTED + mark


def _match_name(
    value: bytes, name: re.Match[bytes], hides: Hides, depth: int
) -> tuple[int, int, bytes] | None:
    """Find a hidden value in `name=value`, header or repr; return begin, end and replacement."""
    begin = name.end("sign")
    if not hides(_decode_name(name["name"])):
        return None if depth >= MAX_DEPTH else _redact_encoded(value, begin, hides, depth)
    if _STRING_IS_OVER.match(value, begin):
        return None
    first = _skip_prefix(value, begin)
    first = begin if _STRING_IS_OVER.match(value, first) else first
    quoted = _QUOTED.match(value, first)
    around = quoted or _QUOTED.search(value, first, first + _NEAR)
    slashes, mark = (len(around["slashes"]), around["quote"]) if around else (0, b'"')
    end = _end_of_value(value, first, mark, slashes)
    if end is not None:
        return begin, end, quoted[0] + REDACTED + quoted[0] if quoted else REDACTED
    if _HEADER.search(name["name"]):
        match = _LINE.match(value, begin)
    elif b":" not in name["sign"]:
        match = _WORD.match(value, begin)
    else:
        return None
    text = match[0].rstrip().rstrip(b",}])") if match else b""
    return (begin, begin + len(text), REDACTED) if text else None


def _redact_encoded(
    value: bytes, begin: int, hides: Hides, depth: int
) -> tuple[int, int, bytes] | None:
    """Redact percent-encoded form data or JSON at `begin`, if it contains hidden values.

    Return begin, end and replacement; None if there is nothing to redact.
    """
    found = _ENCODED.match(value, begin)
    if found is None or (b"%22" not in found[0] and b"%3" not in found[0]):
        return None
    plain = unquote_to_bytes(found[0].replace(b"+", b" "))
    shown = redact_values(plain, hides, depth + 1)
    return None if shown == plain else (begin, found.end(), quote_from_bytes(shown).encode())


def _unescape_key(key: bytes) -> bytes:
    if b"\\" not in key:
        return key
    try:
        text = json.loads(b'"' + re.sub(rb"\\+", rb"\\", key) + b'"')
    except ValueError:
        return key
    return str(text).encode(errors="replace")


def _decode_name(name: bytes) -> bytes:
    return unquote_to_bytes(name.replace(b"+", b" ")) if b"%" in name or b"+" in name else name


def _unescape_sign(found: re.Match[bytes]) -> bytes:
    r"""Return the character that an escape (`\u0026`) stands for, a quote with backslashes."""
    sign = bytes([int(found[2], 16)])
    return b"\\" * _quote_depth(len(found[1])) + sign if sign in b"\"'" else sign


def _quote_depth(slashes: int) -> int:
    """Return the number of backslashes to put before the quote that an escape stands for.

    `slashes` is the number of backslashes in the escape, more than one in nested strings.
    """
    return slashes if slashes % 2 else 2 * _quote_depth(slashes // 2) + 1


def _skip_prefix(value: bytes, begin: int) -> int:
    """Return the index at which a value begins after a prefix such as `b` or `SecretStr`."""
    found = _PREFIX.match(value, begin)
    return found.end() if found else begin


def _end_of_value(value: bytes, first: int, quote: bytes, slashes: int) -> int | None:
    """Return the end of the string, object, list or call that begins at `first`.

    An unclosed value ends at the end of the text. Return None if none of these begins at `first`.
    """
    string = _QUOTED.match(value, first)
    if string is not None:
        triple = string[0] * 3
        if value.startswith(triple, first):
            end = value.find(triple, first + len(triple))
            return len(value) if end < 0 else end + len(triple)
        return _end_of_string(value, string.end(), string["quote"], slashes)
    mark = value[first : first + 1]
    return _end_of_nested(value, first, quote, slashes) if mark and mark in _OPENING else None


def _end_of_string(value: bytes, begin: int, quote: bytes, slashes: int) -> int:
    for found in _ENDS[quote].finditer(value, begin):
        count = len(found[1])
        if count < slashes:  # The string around it ended.
            return found.start()
        if count % (2 * slashes + 2) == slashes:
            return found.end()
    return len(value)


def _end_of_nested(value: bytes, begin: int, quote: bytes, slashes: int) -> int:
    depth, at = 0, begin
    while (found := _BRACKETS[quote].search(value, at)) is not None:
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
