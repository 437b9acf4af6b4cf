"""Bucketing of targeting keys for the share of calls that a ramping switch allows.

A targeting key falls into one of 10,000 buckets by the SHA-256 of salt and key, so clients in every
language agree, and an allowed key stays allowed as the share grows. Test vectors:
`docs/vectors/bucketing.json`.
"""

from collections.abc import Callable
from hashlib import sha256

BUCKETS = 10_000

BucketDraw = Callable[[], int]
"""A function that returns a random bucket, uniform in [0, 10000)."""


def bucket(salt: str, targeting_key: str) -> int:
    """Return the bucket of a targeting key, in [0, 10000).

    Text with lone surrogates, which is not valid Unicode, has a bucket, too.
    """
    text = salt + ":" + targeting_key  # Formatting would use the name of an enum member.
    digest = sha256(text.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % BUCKETS


def always_allow() -> int:
    """Return -1, a bucket below every share: with it, a ramping switch blocks no call.

    It replaces the random bucket of a call without a targeting key.
    """
    return -1
