"""Scopes of switches, each registered as one object.

A new scope also needs a row in `switchgear.evaluation.scopes` of the client and in
`docs/operate.md`. Clients refuse a snapshot with an unknown scope, so upgrade them before engaging
a switch of a new scope.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from controlplane.core import scopes
from controlplane.core.registry import KindRegistry
from controlplane.core.scopes import KEY, KEY_PATTERN, is_switch_id, is_trippable

__all__ = ["KEY", "KEY_PATTERN", "SCOPES", "SwitchScope", "is_switch_id", "is_trippable"]

HOLD, RAMP, RELEASE = "hold", "ramp", "release"


@dataclass(frozen=True, kw_only=True)
class SwitchScope(scopes.Scope):
    """A scope of switches, with its policies and display texts.

    `question_field` is the field of a check request that lists keys of the scope. `noun` and
    `plural` name its switches in postmortems. `trip_triggers` are the default trip policies that
    include it.
    """

    question_field: str = ""
    noun: str
    plural: str
    description: str
    example: str
    icon: str = "board"
    default_on_expiry: str = RAMP
    on_expiry: tuple[str, ...] = (HOLD, RAMP, RELEASE)
    overdue_severity: str = "warning"
    immediate_release_needs_approval: bool = False
    trip_triggers: frozenset[str] = frozenset()

    @property
    def example_id(self) -> str:
        return f"{self.name}:{self.example}"


SCOPES = cast("KindRegistry[SwitchScope]", scopes.SCOPES)
"""All scopes, in decision order."""

GLOBAL = SwitchScope(
    name="global",
    position=0,
    only_key="all",
    noun="everything",
    plural="everything",
    description="All traffic. The only switch is global:all; two people release it.",
    example="all",
    icon="global",
    default_on_expiry=HOLD,
    on_expiry=(HOLD,),
    overdue_severity="critical",
    immediate_release_needs_approval=True,
)
SEGMENT = SwitchScope(
    name="segment",
    position=10,
    question_field="segments",
    noun="tenant",
    plural="tenants",
    description="A group of customers or kind of work",
    example="finance",
    icon="segment",
    default_on_expiry=HOLD,
    overdue_severity="critical",
    immediate_release_needs_approval=True,
    trip_triggers=frozenset({"provider-outage"}),
)
FEATURE = SwitchScope(
    name="feature",
    position=20,
    question_field="features",
    noun="feature",
    plural="features",
    description="One feature",
    example="smart-reply",
    icon="feature",
    trip_triggers=frozenset({"provider-outage"}),
)
EXPERIMENT = SwitchScope(
    name="experiment",
    position=30,
    question_field="experiments",
    noun="experiment",
    plural="experiments",
    description="One experiment",
    example="checkout-v3",
    icon="experiment",
    trip_triggers=frozenset({"srm"}),
)
SCOPES.register(GLOBAL, SEGMENT, FEATURE, EXPERIMENT)
GLOBAL_ID = f"{GLOBAL.name}:{GLOBAL.only_key}"


def keyed_scopes() -> list[SwitchScope]:
    return [scope for scope in SCOPES.values() if not scope.stops_everything]


def question_fields() -> Mapping[str, str]:
    """Return a mapping of check request field (`segments`) to scope, in decision order."""
    return _question_fields_of(tuple(SCOPES))


@lru_cache(maxsize=8)
def _question_fields_of(names: tuple[str, ...]) -> Mapping[str, str]:
    # Cached because the data plane reads the fields at every check.
    found = [SCOPES[name] for name in names]
    return {scope.question_field: scope.name for scope in found if not scope.stops_everything}


def default_on_expiry(name: str) -> str:
    """Return the scope's default expiry policy; `hold` for an unregistered scope."""
    scope = SCOPES.get(name)
    return scope.default_on_expiry if scope else HOLD


def names_defaulting_to(on_expiry: str) -> str:
    """Return the scopes with this default expiry policy as text: `global and segment`."""
    return join_words(
        [scope.name for scope in SCOPES.values() if scope.default_on_expiry == on_expiry]
    )


def join_words(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def join_first(names: Sequence[str], most: int) -> str:
    """Return the first names as text, and how many more there are: `a, b and 3 more`."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def overdue_severity(name: str) -> str:
    """Return the severity of overdue episodes; critical for an unregistered scope."""
    scope = SCOPES.get(name)
    return scope.overdue_severity if scope else "critical"


def immediate_release_needs_approval(name: str) -> bool:
    """Return True if an immediate release of a switch of this scope needs a second person."""
    scope = SCOPES.get(name)
    return scope is None or scope.immediate_release_needs_approval


def split_id(typed: str) -> tuple[str, str] | None:
    """Return scope and key of a full id such as `feature:nl2sql`, or None if it has no scope."""
    scope, colon, key = typed.partition(":")
    scope = scope.strip().lower()
    return (scope, key.strip()) if colon and scope in SCOPES else None
