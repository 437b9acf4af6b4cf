"""Scopes of switch ids, registered by the app that owns switches."""

import re
from dataclasses import dataclass
from operator import attrgetter

from controlplane.core.registry import KindRegistry

KEY_PATTERN = r"[A-Za-z0-9._-]{1,120}"
KEY = re.compile(KEY_PATTERN)
MAX_NAME_LENGTH = 10
_NAME = re.compile(r"[a-z]{1,10}")


@dataclass(frozen=True, kw_only=True)
class Scope:
    """A scope of switches, the prefix of their ids: `segment` in `segment:finance`.

    Decisions check the scopes in order of `position`. A scope with `only_key` has a single switch,
    with this key, which stops everything.
    """

    name: str
    position: int
    only_key: str = ""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"{self.name!r} must be 1 to {MAX_NAME_LENGTH} lower-case letters")

    @property
    def stops_everything(self) -> bool:
        return bool(self.only_key)

    def allows(self, key: str) -> bool:
        """Return True if a switch of this scope can have the key."""
        return key == self.only_key if self.only_key else KEY.fullmatch(key) is not None


SCOPES = KindRegistry[Scope](order=attrgetter("position"))


def is_switch_id(text: str) -> bool:
    """Return True for the id of a switch, such as `segment:finance` or `global:all`."""
    name, _, key = text.partition(":")
    scope = SCOPES.get(name)
    return scope is not None and scope.allows(key)


def is_trippable(text: str) -> bool:
    """Return True for the id of a switch that automations may trip: any but the global switch."""
    return is_switch_id(text) and not SCOPES[text.partition(":")[0]].stops_everything


def global_switch_id() -> str:
    """Return the id of the switch that stops everything, `global:all`, or "" without one."""
    for scope in SCOPES.values():
        if scope.stops_everything:
            return f"{scope.name}:{scope.only_key}"
    return ""
