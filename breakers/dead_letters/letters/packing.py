"""An entry's fields as one value for a column: names and values in order, any bytes. Pure."""

from collections.abc import Iterable

import orjson


def pack(pairs: Iterable[tuple[bytes, bytes]]) -> bytes:
    """JSON of pairs; each byte is a character, so that whatever is no text comes through."""
    return orjson.dumps(
        [[name.decode("latin-1"), value.decode("latin-1")] for name, value in pairs]
    )


def unpack(packed: bytes | memoryview) -> tuple[tuple[bytes, bytes], ...]:
    """The pairs as they were packed."""
    return tuple(
        (name.encode("latin-1"), value.encode("latin-1"))
        for name, value in orjson.loads(bytes(packed))
    )
