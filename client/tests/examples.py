"""Numbers of Hypothesis' examples."""

from typing import Any

from hypothesis import settings

USUAL = 100
"""Examples of Hypothesis unless a profile says otherwise."""


def examples(number: int, **more: Any) -> settings:
    """Return settings with `number` examples, or as many times fewer or more as the profile has:
    a fifth of them in `make test-fast`."""
    scaled = number * settings().max_examples // USUAL
    return settings(max_examples=max(scaled, 1), **more)
