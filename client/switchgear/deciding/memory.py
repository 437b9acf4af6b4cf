"""What a client knows: the present snapshot, and the answers that follow from it, made once each.

A snapshot is replaced as a whole, and with it all answers, so whoever asks sees one or the other.
Nothing here does I/O. What the follower writes and any thread reads meets in :attr:`Memory.cells`.
"""

import logging
import random
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from switchgear.clock import ConsoleClock
from switchgear.deciding.bucketing import BUCKETS, Draw
from switchgear.deciding.counting import Cell, Counts
from switchgear.deciding.evaluate import Decision, Question, evaluate, question
from switchgear.deciding.snapshot import Entry, Snapshot

MOST_CELLS = 4096
MOST_EPOCHS = 1000
MOST_COMPLAINTS = 20
FORCED_REASON = "SWITCHGEAR_FORCE_ENGAGED"

_LASTING = (str, tuple, frozenset, type(None))

log = logging.getLogger("switchgear")

Key = tuple[object, object, object]
"""Segment, feature and experiments, as the caller named them."""


@dataclass(frozen=True)
class View:
    """A snapshot with what is forced over it, and the answers found so far. None before the first.

    `entries` are those that block or ramp, by switch id.
    """

    snapshot: Snapshot | None
    entries: Mapping[str, Entry]
    cells: dict[Key, Cell] = field(default_factory=dict)

    @property
    def version(self) -> int | None:
        return None if self.snapshot is None else self.snapshot.version


Watcher = Callable[[View, View], None]
"""Is told the view before and after, by whoever changed it; must not raise and not wait."""


class Memory:
    """The present view. Every method may be called from any thread."""

    def __init__(
        self,
        clock: ConsoleClock,
        forced: Mapping[str, str] | Iterable[str] = (),
        draw: Draw = lambda: random.randrange(BUCKETS),  # noqa: S311
    ) -> None:
        self.clock = clock
        self.counts = Counts()
        self.left_epochs: tuple[str, ...] = ()
        """Epochs never to return to, oldest first; the latest 1,000."""
        self.watchers: list[Watcher] = []
        self._draw = draw
        # One that its holder may take again: a signal's handler may ask, too.
        self._lock = threading.RLock()
        self._forced = {switch: _forced(switch, FORCED_REASON) for switch in forced}
        self._retired: list[dict[Key, Cell]] = []
        self._complaints = 0
        self.view = View(None, dict(self._forced))
        self.cells = self.view.cells
        """Those of `view`, one look-up nearer for the hottest path."""

    @property
    def snapshot(self) -> Snapshot | None:
        """The one in force."""
        return self.view.snapshot

    def accept(self, snapshot: Snapshot) -> bool:
        """Put `snapshot` in force; False for one from the past, which changes nothing.

        Versions never go back within an epoch, and an epoch once left stays left. The same version
        may come with other entries: an instance that is marked for drills has its own document.
        """
        with self._lock:
            present = self.view.snapshot
            if present is not None:
                if snapshot.epoch != present.epoch:
                    if snapshot.epoch in self.left_epochs:
                        return False
                    left = (*self.left_epochs, present.epoch)
                    self.left_epochs = left[-MOST_EPOCHS:]
                elif snapshot.version < present.version:
                    return False
                elif snapshot.document == present.document:
                    return True
            elif snapshot.epoch in self.left_epochs:
                return False
            self._show(snapshot)
        return True

    def force(self, switch_id: str, reason: str) -> None:
        """Engage a switch here and now, whatever the snapshot says."""
        with self._lock:
            self._forced[switch_id] = _forced(switch_id, reason)
            self._show(self.view.snapshot)

    def unforce(self, switch_id: str) -> None:
        """The snapshot decides again."""
        with self._lock:
            self._forced.pop(switch_id, None)
            self._show(self.view.snapshot)

    @property
    def forced(self) -> dict[str, str]:
        """The reasons of what is engaged here whatever the snapshot says, by switch id."""
        return {switch: entry.reason for switch, entry in dict(self._forced).items()}

    def decide(
        self, segment: object, feature: object, experiments: object, targeting_key: object
    ) -> Decision:
        """Answer and count one call, and keep an answer that stays the same. Never raises."""
        view = self.view
        if isinstance(experiments, list):
            experiments = tuple(experiments)
        try:
            cell = view.cells.get((segment, feature, experiments))
        except TypeError:
            cell = None  # Something that can't be looked up.
        if cell is None:
            asked = question(segment, feature, experiments)
            cell = Cell(asked, self._constant(view, asked))
            self._complain(asked)
            self._keep(view, segment, feature, experiments, cell)
        if cell.decision is not None:
            self.counts.add(cell.question, cell.decision)
            return cell.decision
        key = None if targeting_key is None else str(targeting_key)
        blocking = evaluate(
            cell.question.switch_ids, view.entries, key, now=self.clock.now(), draw=self._draw
        )
        decision = self._decision(view, cell.question, blocking)
        self.counts.add(cell.question, decision)
        return decision

    def counted(self) -> dict[str, tuple[int, int]]:
        """Calls allowed and blocked since the process began, by switch id."""
        with self._lock:
            self._fold()
        return self.counts.switches()

    def after_fork(self) -> None:
        """In a child: the calls were the parent's, and so were the locks."""
        self._lock = threading.RLock()
        self.clock.after_fork()
        self.counts = Counts()
        self._retired = []
        self.view = View(self.view.snapshot, self.view.entries)
        self.cells = self.view.cells

    def _show(self, snapshot: Snapshot | None) -> None:
        before = self.view
        self._fold()
        self._retired = [before.cells]
        entries = {} if snapshot is None else snapshot.entries
        self.view = View(snapshot, {**entries, **self._forced})
        self.cells = self.view.cells
        for watcher in self.watchers:
            watcher(before, self.view)

    def _fold(self) -> None:
        """A call that is just being counted in cells that were replaced is found the next time."""
        for cells in (self.view.cells, *self._retired):
            for cell in list(cells.values()):
                if cell.decision is not None:
                    self.counts.add(cell.question, cell.decision, cell.take())

    def _keep(
        self, view: View, segment: object, feature: object, experiments: object, cell: Cell
    ) -> None:
        # An iterator, say, is used up by the first look.
        if not all(isinstance(each, _LASTING) for each in (segment, feature, experiments)):
            return
        with self._lock:
            if view is not self.view:
                return
            if len(view.cells) >= MOST_CELLS:
                self._show(view.snapshot)
                view = self.view
            try:
                view.cells.setdefault((segment, feature, experiments), cell)
            except TypeError:
                return

    def _constant(self, view: View, asked: Question) -> Decision | None:
        """What is answered until the snapshot changes; None if it depends on the call."""
        for switch_id in asked.switch_ids:
            entry = view.entries.get(switch_id)
            if entry is None:
                continue
            if entry.state == "ramping" or entry.lapses_at is not None:
                return None
            return self._decision(view, asked, entry)
        return self._decision(view, asked, None)

    def _decision(self, view: View, asked: Question, blocking: Entry | None) -> Decision:
        if blocking is not None:
            return Decision(False, blocking.id, blocking.reason, view.version)
        known = view.snapshot is not None and not asked.invalid
        return Decision(True, version=view.version, known=known)

    def _complain(self, asked: Question) -> None:
        if asked.invalid and self._complaints < MOST_COMPLAINTS:
            self._complaints += 1
            log.warning("switchgear: no switch can have this key: %s", ", ".join(asked.invalid))


def _forced(switch_id: str, reason: str) -> Entry:
    return Entry(switch_id, "engaged", 0, "", reason, None, "hold")
