"""State and share of every switch, derived from the rows of the audit trail alone.

It uses no code of the product.
"""

from collections.abc import Iterable, Mapping
from typing import Any

PUBLISHED = {
    *("switch.engaged", "switch.extended", "switch.released"),
    *("ramp.started", "ramp.advanced", "ramp.compensated", "ramp.aborted"),
}
ENDS_RAMP = {"switch.engaged", "ramp.compensated", "ramp.aborted"}


def retell(rows: Iterable[tuple[str, str, Any, Any]]) -> dict[str, tuple[str, float]]:
    """Return state and share of each switch after these rows (target, action, before, after).

    Raise AssertionError for a row that doesn't follow from the earlier ones: traffic flows after an
    engage only by a ramp or a release, and every publication has a row.
    """
    told: dict[str, tuple[str, float]] = {}
    version = 0  # The first row may have any version.
    for target, action, before, after in rows:
        if action not in PUBLISHED and not action.startswith(("ramp.", "episode.")):
            continue
        if "version" not in after:  # A ramp that waits for approval changes no switch.
            continue
        was = told.get(target, ("released", 100))
        assert describe_state(before) == was, (
            f"{action} of {target} begins otherwise than it was: {was}"
        )
        now = told[target] = describe_state(after)
        if after["version"] != before["version"]:
            assert action in PUBLISHED, f"{action} published"
            assert version in (0, after["version"] - 1), f"{action} is not the next publication"
            version = after["version"]
        _follows(action, was[1], now[1])
    return told


def describe_state(picture: Mapping[str, Any]) -> tuple[str, float]:
    share = 100 if picture["state"] == "released" else picture["allow_percent"]
    return picture["state"], share


def _follows(action: str, was: float, now: float) -> None:
    if action in ENDS_RAMP:
        assert now == 0
    elif action == "ramp.started":
        assert was == 0 < now
    elif action == "ramp.advanced":
        assert was < now
    elif action == "switch.released":
        assert now == 100
    else:
        assert was == now, f"{action} changed the share from {was} to {now}"
