"""What the instances that take part in drills are served: the same version, with more engaged.

Everybody else is served the normal document. A drill's begin and end, and each change of the marks
meanwhile, count the version up, so that everybody hears of it; and the two documents of a version
have ETags of their own, so that nobody takes one for the other. What is drilled ends by itself,
here and at the client, whatever became of the control plane.
"""

from collections.abc import Iterable
from datetime import datetime

from switches.drills.patterns import Marks
from switches.snapshot import SnapshotEntry

from .instance_names import service_of
from .served_copy import Copy

MAX_NAMES = 20_000
"""Names of which it is remembered whether they are marked."""


class Rehearsal:
    """The drills that are in force, and for whom."""

    __slots__ = ("_drilled", "_made", "_marks", "_names")

    def __init__(self, marks: Marks, drilled: Iterable[SnapshotEntry]) -> None:
        self._marks = marks
        self._drilled = tuple(drilled)
        self._made: tuple[tuple[SnapshotEntry, ...], Copy] | None = None
        self._names: dict[bytes, bool] = {}

    def __repr__(self) -> str:
        return f"Rehearsal({self._marks}, {self._drilled})"

    def copy_for(self, name: bytes | None, now: datetime, normal: Copy) -> Copy:
        """What the instance of that name gets: its own copy, made once, or the normal one."""
        if not self.is_for(name):
            return normal
        running = tuple(entry for entry in self._drilled if _is_running(entry, now, normal))
        if not running:
            return normal
        if self._made is None or self._made[0] != running:
            entries = (*normal.entries.values(), *running)
            self._made = running, normal.of(normal.publication, entries, normal, is_rehearsed=True)
        return self._made[1]

    def is_for(self, name: bytes | None) -> bool:
        """Whether the instance of that name is marked."""
        if name is None:
            return False
        known = self._names.get(name)
        if known is None:
            text = name.decode("utf-8", "replace")
            known = service_of(text) is not None and self._marks.match(text)
            if len(self._names) >= MAX_NAMES:
                self._names.clear()
            self._names[name] = known
        return known


def _is_running(entry: SnapshotEntry, now: datetime, normal: Copy) -> bool:
    """A switch that is really stopped is told as it is, to all."""
    ends_at = entry.expires_at
    return ends_at is not None and now < ends_at and entry.id not in normal.entries
