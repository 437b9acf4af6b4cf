"""The key and the priority of a call in a bulkhead."""

import logging
import operator
from typing import Any

from switchgear.evaluation.keys import KEY_TYPES, key_text

log = logging.getLogger("switchgear")


def validate_priority(given: Any) -> Any:
    """What is said once for all calls: a number or what finds one; None is 0. Raises
    :class:`TypeError`."""
    if given is None:
        return 0
    if not callable(given) and not hasattr(type(given), "__index__"):
        raise TypeError(f"a priority is a whole number or a function, not {given!r:.50}")
    return given


def validate_key(given: object) -> str | None:
    """Return the text of a key, None for None. Raises :class:`TypeError` for an invalid key."""
    if given is None:
        return None
    text = key_text(given)
    if text is None:
        raise TypeError(f"key must be a {KEY_TYPES}, not {type(given).__name__:.100}")
    return text


class PriorityReader:
    """Reads what is said for one call, which never fails for that: what is no number is 0."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._has_complained = False

    def of(self, given: Any) -> int:
        """As a number; None is 0."""
        if given is None:
            return 0
        try:
            return operator.index(given)
        except Exception:  # Also what an `__index__` of somebody else's raises.
            if not self._has_complained:
                self._has_complained = True
                kind = type(given).__name__
                log.warning(
                    "switchgear: a priority in bulkhead %s is no whole number but %s: 0 is taken",
                    self._name,
                    kind,
                )
            return 0
