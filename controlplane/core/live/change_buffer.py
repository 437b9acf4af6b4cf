"""Deduplicates changed resource ids between two reads. Pure."""

from collections.abc import Iterable

MAX_WAITING = 5_000
MAX_AT_ONCE = 100
"""Fewer than fit in a mailbox, so a client that keeps up receives all of them."""


class Gathering:
    """The ids of one topic waiting to be read, in the order they were first added.

    It is bounded: above `most` ids it overflows, and changes can't be reported one by one.
    """

    def __init__(self, most: int = MAX_WAITING, at_once: int = MAX_AT_ONCE) -> None:
        self._most = most
        self._at_once = at_once
        self._ids: dict[str, None] = {}
        self.overflowed = False
        """True if ids were lost since :meth:`clear`."""

    def __len__(self) -> int:
        return len(self._ids)

    def note(self, ids: Iterable[str]) -> None:
        self._ids.update(dict.fromkeys(ids))
        if len(self._ids) > self._most:
            self._ids.clear()
            self.overflowed = True

    def take(self) -> list[str]:
        """Remove and return the next ids to read, oldest first."""
        taken = list(self._ids)[: self._at_once]
        for each in taken:
            del self._ids[each]
        return taken

    def clear(self) -> None:
        self._ids.clear()
        self.overflowed = False
