"""Bucketing of targeting keys for the share of calls that a ramping switch allows.

A targeting key falls into one of 10,000 buckets by the SHA-256 of salt and key, so clients in every
language agree, and an allowed key stays allowed as the share grows. Source: the contract's
"Bucketing"; `docs/vectors/bucketing.json` has the cases.
"""

from collections.abc import Callable
from hashlib import sha256

BUCKETS = 10_000

BucketDraw = Callable[[], int]
"""A function that returns a random bucket, uniform in [0, 10000)."""


def bucket(salt: str, targeting_key: str) -> int:
    """Return the bucket of a targeting key, in [0, 10000).

    Text that is not valid Unicode (lone surrogates) has a bucket, too, since this must not raise.
    """
    text = salt + ":" + targeting_key  # Formatting would use the name of an enum member.
    digest = sha256(text.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % BUCKETS


def always_allow() -> int:
    """Return a bucket that every ramp allows, in place of a random one."""
    return -1
