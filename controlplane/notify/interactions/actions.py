"""Registry of button actions; apps register theirs in a module named `buttons`."""

import functools
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from django.utils.module_loading import autodiscover_modules

from controlplane.core.actors import Actor

ButtonAction = Callable[[Mapping[str, Any], Actor, datetime], str]
"""Carries out a button's action; returns a sentence, or raises :class:`DomainError`."""

_presses: dict[str, ButtonAction] = {}
_discover_modules = functools.cache(autodiscover_modules)


def button(name: str) -> Callable[[ButtonAction], ButtonAction]:
    """Register the decorated function as the action of the button `name`."""

    def register(press: ButtonAction) -> ButtonAction:
        _presses[name] = press
        return press

    return register


def find_action(name: str) -> ButtonAction | None:
    _discover_modules("buttons")
    return _presses.get(name)
