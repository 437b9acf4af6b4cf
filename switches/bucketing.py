"""Which share of the traffic a ramping switch lets through: pure integer arithmetic.

A targeting key falls into one of 10,000 buckets by the SHA-256 of salt and key, so every client in
every language gives the same answer, and a key that is in stays in as the share grows.
"""

from collections.abc import Callable
from decimal import Decimal
from hashlib import sha256

BUCKETS = 10_000

Draw = Callable[[], int]
"""Gives a bucket, uniform in [0, 10000), fresh at every call."""


def bucket(salt: str, targeting_key: str) -> int:
    """The bucket of a targeting key, in [0, 10000): the same on every machine."""
    digest = sha256(f"{salt}:{targeting_key}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % BUCKETS


def basis_points(percent: Decimal) -> int:
    """A percentage in hundredths of a percent, exactly: `Decimal("12.5")` → 1250.

    Raises ValueError below 0, above 100, or with more than two decimals.
    """
    points = int(percent * 100)
    if percent * 100 != points or not 0 <= points <= BUCKETS:
        raise ValueError(f"{percent} is not a percentage with at most two decimals")
    return points


def admits(allow_percent: Decimal, salt: str, targeting_key: str | None, draw: Draw) -> bool:
    """True if this call belongs to the share that flows; without a key, chance decides anew."""
    taken = draw() if targeting_key is None else bucket(salt, targeting_key)
    return taken < basis_points(allow_percent)
