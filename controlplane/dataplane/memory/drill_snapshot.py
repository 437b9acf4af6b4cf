"""The snapshot for instances that take part in drills: drilled switches appear engaged.

A drill's marks are patterns of names of the instances that take part. All others get the normal
snapshot of the same version, with another ETag. The version is incremented when a drill starts or
ends and when its marks change. Even without the control plane, a drill ends at its deadline, here
and in the client.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from switches.drills.patterns import Marks
from switches.snapshot import SnapshotEntry

from .instance_names import service_of
from .served_copy import Copy

MAX_NAMES = 20_000
"""Most instance names whose match is cached."""


@dataclass(slots=True, eq=False)
class DrillSnapshot:
    """Selects an instance's snapshot: the drill copy (drilled switches engaged) if it takes part.

    `marks` are patterns of the names of instances that take part, and `drilled` the entries of the
    drilled switches.
    """

    marks: Marks
    drilled: Sequence[SnapshotEntry]
    _made: tuple[tuple[SnapshotEntry, ...], Copy] | None = field(default=None, repr=False)
    _names: dict[bytes, bool] = field(default_factory=dict, repr=False)

    def copy_for(self, name: bytes | None, now: datetime, normal: Copy) -> Copy:
        """Return the drill copy if the instance `name` is in a running drill, else `normal`."""
        if not self.is_for(name):
            return normal
        running = tuple(
            entry
            for entry in self.drilled
            if entry.expires_at is not None and now < entry.expires_at  # The drill's deadline.
            if entry.id not in normal.entries  # Else the switch is engaged for real.
        )
        if not running:
            return normal
        if self._made is None or self._made[0] != running:
            entries = (*normal.entries.values(), *running)
            copy = normal.render(normal.publication, entries, normal, is_drill_copy=True)
            self._made = running, copy
        return self._made[1]

    def is_for(self, name: bytes | None) -> bool:
        if name is None:
            return False
        known = self._names.get(name)
        if known is None:
            text = name.decode("utf-8", "replace")
            known = service_of(text) is not None and self.marks.match(text)
            if len(self._names) >= MAX_NAMES:
                self._names.clear()
            self._names[name] = known
        return known
