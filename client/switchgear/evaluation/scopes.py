"""The scopes of switches, in the order in which they decide; the same as in the console."""

from typing import Literal, NamedTuple


class Scope(NamedTuple):
    """A scope of switches; its name is the prefix of their ids.

    `parameter` is the name of the argument by which a check takes keys of this scope. `only_key` is
    the key of the only switch in this scope, empty if there may be any number.
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
