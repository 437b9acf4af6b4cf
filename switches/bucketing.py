"""Admission of a share of traffic through a ramping switch, in integer arithmetic.

A targeting key maps to one of 10,000 buckets by the SHA-256 of salt and key, so all clients decide
alike and an admitted key stays admitted as the share grows.
"""

from collections.abc import Callable
from decimal import Decimal
from hashlib import sha256

BUCKETS = 10_000

Draw = Callable[[], int]
"""A function that returns a random bucket, uniform in [0, 10000)."""


def bucket(salt: str, targeting_key: str) -> int:
    """Return the bucket of a targeting key, in [0, 10000)."""
    digest = sha256(f"{salt}:{targeting_key}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % BUCKETS


def basis_points(percent: Decimal) -> int:
    """Return a percentage in hundredths of a percent: `Decimal("12.5")` → 1250.

    Raise ValueError below 0, above 100, or for more than two decimals.
    """
    points = int(percent * 100)
    if percent * 100 != points or not 0 <= points <= BUCKETS:
        raise ValueError(f"{percent} is not a percentage with at most two decimals")
    return points


def admits(allow_percent: Decimal, salt: str, targeting_key: str | None, draw: Draw) -> bool:
    """Return True if a ramping switch admits the call: its bucket is in the allowed share.

    A call without a targeting key gets a random bucket from `draw`.
    """
    taken = draw() if targeting_key is None else bucket(salt, targeting_key)
    return taken < basis_points(allow_percent)
