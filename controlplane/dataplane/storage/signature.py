"""Signed files on disk: format, signing and verification. Pure.

The first line is `<kind> 1 <HMAC-SHA256 of the rest, in hex>`, the rest one canonical JSON
document. A text is accepted only if serializing the parsed document reproduces it byte for byte.
"""

import hmac
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import orjson

FORMAT = b"1"

T = TypeVar("T")


class InvalidFile(Exception):
    """Raised for a saved text that can't be accepted; the message gives the reason, for the log."""


def seal(kind: bytes, rest: bytes, key: bytes) -> bytes:
    """Return the signed content of a file."""
    return b"%b %b %b\n%b" % (kind, FORMAT, _signature(rest, key), rest)


def open_sealed(
    kind: bytes,
    text: bytes,
    key: bytes,
    parse: Callable[[Any], T],
    written: Callable[[T], bytes],
) -> T:
    """Return the document in `text`, after verifying its signature.

    `parse` and `written` convert between the document and its object. Nothing is parsed before the
    signature is verified. Raises :class:`InvalidFile`.
    """
    first, _, rest = text.partition(b"\n")
    found, form, signature = (*first.split(b" ", 2), b"", b"")[:3]
    if found != kind:
        raise InvalidFile("it is not a copy of the data plane")
    if form != FORMAT:
        raise InvalidFile(f"its format is not {FORMAT.decode()}")
    if not hmac.compare_digest(signature, _signature(rest, key)):
        raise InvalidFile("its signature is wrong: it is damaged, or another key signed it")
    try:
        saved = parse(orjson.loads(rest))
        faithful = written(saved) == rest
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise InvalidFile(f"its schema is another one ({type(error).__name__}: {error})") from error
    if not faithful:
        raise InvalidFile("its schema is another one (it would be written differently)")
    return saved


def count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(f"{value!r} is not a count")
    return value


def word(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def moment(value: Any) -> datetime:
    return datetime.fromisoformat(word(value)).astimezone(UTC)


def _signature(rest: bytes, key: bytes) -> bytes:
    return hmac.digest(key, rest, "sha256").hex().encode()
