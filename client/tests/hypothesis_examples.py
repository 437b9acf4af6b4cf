"""The number of Hypothesis' examples."""

from typing import Any

from hypothesis import settings

USUAL = 100
"""Hypothesis' default number of examples."""


def examples(number: int, **more: Any) -> settings:
    """Return settings with `number` examples, scaled by the profile.

    `make test-fast` runs a fifth of them.
    """
    scaled = number * settings().max_examples // USUAL
    return settings(max_examples=max(scaled, 1), **more)
