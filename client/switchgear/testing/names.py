"""Which switch a test means."""

from switchgear.deciding.snapshot import is_switch


def switch_id(name: str) -> str:
    """The id of a switch; `global` alone means `global:all`. Raises :class:`ValueError`."""
    found = "global:all" if name == "global" else name
    if not is_switch(found):
        raise ValueError(f"{name!r:.200} is no switch: say segment:finance, feature:chat or global")
    return found
