"""The answers that follow from one snapshot."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from switchgear.evaluation.decision_counts import Cell
from switchgear.evaluation.decisions import Decision
from switchgear.evaluation.keys import CellKey, kept_key
from switchgear.evaluation.snapshot import Entry, Snapshot


@dataclass(frozen=True)
class View:
    """A snapshot with what is forced over it, and the answers found so far. None before the first.

    `entries` are those that block or ramp, by switch id.
    """

    snapshot: Snapshot | None
    entries: Mapping[str, Entry]
    cells: dict[CellKey, Cell] = field(default_factory=dict)
    order: deque[CellKey] = field(default_factory=deque)
    """The keys of `cells`, oldest first: a dictionary is slow to say which is its first."""

    @property
    def version(self) -> int | None:
        return None if self.snapshot is None else self.snapshot.version

    def stopped_switches(self, now: float | None) -> set[str]:
        """Return the switches that are engaged or ramping at `now`, as :func:`evaluate` has it."""
        return {
            switch
            for switch, entry in self.entries.items()
            if (at := entry.lapses_at) is None or now is None or at > now
        }

    def stopped(self, now: float | None) -> int:
        """Return how many these are."""
        return len(self.stopped_switches(now))

    def kept_cell(self, key: CellKey) -> Cell | None:
        """Return the cached cell of these keys, which need not be text yet; None without one."""
        try:
            if type(key[2]) is list:
                key = (*key[:2], tuple(key[2]))
            cell = self.cells.get(key)
            if cell is None and (as_text := kept_key(key)) is not None:
                cell = self.cells.get(as_text)
            return cell
        except Exception:  # A key may be of any type, whose methods raise what they like.
            return None

    @cached_property
    def flows(self) -> Decision:
        """The decision of a call that no switch blocks."""
        return Decision(True, version=self.version, known=self.snapshot is not None)


Watcher = Callable[[View, View], None]
"""Is told the view before and after, by whoever changed it; must not raise and not wait."""
