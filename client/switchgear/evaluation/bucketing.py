"""Which share of the calls a ramping switch lets through: whole numbers only.

A targeting key falls into one of 10,000 buckets by the SHA-256 of salt and key, so every client in
every language says the same, and a key that is in stays in as the share grows. Source: the
contract's "Bucketing"; `docs/vectors/bucketing.json` has the cases.
"""

from collections.abc import Callable
from hashlib import sha256

BUCKETS = 10_000

Draw = Callable[[], int]
"""Gives a bucket, uniform in [0, 10000), fresh at every call."""


def bucket(salt: str, targeting_key: str) -> int:
    """The bucket of a targeting key, in [0, 10000).

    Text that is no Unicode (lone surrogates) has a bucket too, of our own: it must not raise.
    """
    text = salt + ":" + targeting_key  # An enum's member would be formatted as its name.
    digest = sha256(text.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % BUCKETS
