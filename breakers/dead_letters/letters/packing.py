"""Packing of an entry's fields into one value for a column. Pure."""

from collections.abc import Iterable

import orjson


def pack(pairs: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return JSON of pairs; each byte becomes a character, so that binary values survive."""
    return orjson.dumps(
        [[name.decode("latin-1"), value.decode("latin-1")] for name, value in pairs]
    )


def unpack(packed: bytes | memoryview) -> tuple[tuple[bytes, bytes], ...]:
    """Return the pairs that were packed."""
    return tuple(
        (name.encode("latin-1"), value.encode("latin-1"))
        for name, value in orjson.loads(bytes(packed))
    )
