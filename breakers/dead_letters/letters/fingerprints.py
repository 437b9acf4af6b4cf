"""Fingerprints of errors: a digest of the error with its varying parts masked. Pure."""

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache

MAX_ERROR_LENGTH = 500
"""Number of characters of an error that the fingerprint depends on.

Lists truncate values to more bytes than these characters take in UTF-8, so a truncated error has
the same fingerprint.
"""
MAX_TYPE_LENGTH = 200
_DIGITS = 16  # of the digest

_QUOTES = frozenset("\"'`“«")
_QUOTED = re.compile(r"\"[^\"]*\"|`[^`]*`|“[^”]*”|«[^»]*»|(?<!\w)'[^']*'(?!\w)")
_SUSPICIOUS = re.compile(r"(?<![\w.,+:@-])[\w.,+:@-]*[\d@][\w.,+:@-]*")
"""Words with a digit or an `@`: only these are searched for varying parts, which is fast."""
_VARIES = (
    ("time", r"\b\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?\b"),
    ("time", r"\b\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?\b"),
    ("id", r"\b[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}\b"),
    ("address", r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"),
    ("address", r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    ("id", r"\b0x[0-9a-f]+\b"),
    ("id", r"\b(?=[a-z]*\d)(?=\d*[a-z])[0-9a-z]{12,}\b"),  # Long mixes of digits and letters.
    ("id", r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,}\b"),
    ("id", r"\b\d{10,}-\d+\b"),  # Entry ids of streams.
    ("n", r"(?:(?<!\w)[-+])?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?"),
)
_VARYING = re.compile(
    "|".join(f"(?P<{name}{number}>{one})" for number, (name, one) in enumerate(_VARIES)),
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Fingerprint:
    """Identity of a group of errors that differ only in varying parts.

    `digest` has 16 hexadecimal digits; `pattern` is the error with `<n>`, `<id>`, `<text>`,
    `<time>` and `<address>` in place of varying parts.
    """

    digest: str
    pattern: str


def significant_parts(error_type: str, error: str) -> tuple[str, str]:
    """Return an error type and error truncated to the parts that determine the fingerprint."""
    return error_type[:MAX_TYPE_LENGTH], _truncate_error(error[: MAX_ERROR_LENGTH + 1])


@lru_cache(maxsize=1000)
def fingerprint_parts(error_type: str, text: str) -> Fingerprint:
    """Return the fingerprint of an error type and error truncated by :func:`significant_parts`."""
    if not _QUOTES.isdisjoint(text):
        text = _QUOTED.sub("<text>", text)
    pattern = " ".join(_SUSPICIOUS.sub(_mask_word, text).split())
    key = f"{error_type}\0{pattern}".encode("utf-8", "surrogatepass")
    return Fingerprint(hashlib.sha256(key).hexdigest()[:_DIGITS], pattern[:MAX_ERROR_LENGTH])


def _truncate_error(error: str) -> str:
    """Return the first `MAX_ERROR_LENGTH` characters of an error.

    The error is cut at a space, so that numbers stay whole. A quotation that is cut becomes empty.
    """
    if len(error) <= MAX_ERROR_LENGTH:
        return error
    cut = error[:MAX_ERROR_LENGTH]
    whole = cut.rpartition(" ")[0] or cut
    for quote in ('"', "`"):
        if whole.count(quote) % 2:
            whole = f"{whole[: whole.rindex(quote)]}{quote}{quote}"
    return whole


def _mask_word(match: re.Match[str]) -> str:
    word = match[0]
    if word.isdigit():
        return "<n>"
    return _VARYING.sub(lambda found: f"<{str(found.lastgroup).rstrip('0123456789')}>", word)
