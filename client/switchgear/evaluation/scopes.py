"""The scopes of switches, in the order in which they decide; the same as in the console."""

from typing import Literal, NamedTuple


class Scope(NamedTuple):
    """A scope: a prefix of switch ids.

    `parameter` is the argument of a check that takes keys of this scope; `only_key` is the key of a
    scope with exactly one.
    """

    name: str
    parameter: str
    default_on_expiry: Literal["hold", "ramp"]
    only_key: str = ""


SCOPES = {
    scope.name: scope
    for scope in (
        Scope("global", "", "hold", only_key="all"),
        Scope("segment", "segment", "hold"),
        Scope("feature", "feature", "ramp"),
        Scope("experiment", "experiments", "ramp"),
    )
}
ORDER = {name: place for place, name in enumerate(SCOPES)}
GLOBAL_ID = "global:all"
