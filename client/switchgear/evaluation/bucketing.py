"""The share of the calls that a ramping switch lets through, in whole numbers only.

A targeting key falls into one of 10,000 buckets by the SHA-256 of salt and key, so clients in every
language agree, and a key that is in stays in as the share grows. Source: the contract's
"Bucketing"; `docs/vectors/bucketing.json` has the cases.
"""

from collections.abc import Callable
from hashlib import sha256

BUCKETS = 10_000

BucketDraw = Callable[[], int]
"""A function that returns a bucket, uniform in [0, 10000), drawn at every call."""


def bucket(salt: str, targeting_key: str) -> int:
    """Return the bucket of a targeting key, in [0, 10000).

    Text that is no Unicode (lone surrogates) has a bucket, too, of our own choice: it must not
    raise.
    """
    text = salt + ":" + targeting_key  # Formatting would use the name of an enum member.
    digest = sha256(text.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % BUCKETS


def always_allow() -> int:
    """A replacement for the random draw that lets every ramp through."""
    return -1
