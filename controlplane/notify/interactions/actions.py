"""Registry of button actions; each app registers its own in a module named `buttons`."""

import functools
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from django.utils.module_loading import autodiscover_modules

from controlplane.core.actors import Actor

Press = Callable[[Mapping[str, Any], Actor, datetime], str]
"""Carry out a button's action for its value; return the result in a sentence.

Raises a :class:`DomainError`, whose text is sent to the presser.
"""

_presses: dict[str, Press] = {}


def button(name: str) -> Callable[[Press], Press]:
    """Register the action of the button `name`."""

    def register(press: Press) -> Press:
        _presses[name] = press
        return press

    return register


def find(name: str) -> Press | None:
    """Return the action of the button `name`, or None if no app registered one."""
    _discover()
    return _presses.get(name)


@functools.cache
def _discover() -> None:
    autodiscover_modules("buttons")
