"""The buttons of messages: each app registers what its own do, in a module named `buttons`."""

import functools
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from django.utils.module_loading import autodiscover_modules

from controlplane.core.actors import Actor

Press = Callable[[Mapping[str, Any], Actor, datetime], str]
"""Carries out what a button (its value) stands for and says in a sentence what is so now.

Raises a :class:`DomainError` that the presser is told.
"""

_presses: dict[str, Press] = {}


def button(name: str) -> Callable[[Press], Press]:
    """Register what the button `name` does."""

    def register(press: Press) -> Press:
        _presses[name] = press
        return press

    return register


def find(name: str) -> Press | None:
    """What the button `name` does, or None if no app has such a button."""
    _discover()
    return _presses.get(name)


@functools.cache
def _discover() -> None:
    autodiscover_modules("buttons")
