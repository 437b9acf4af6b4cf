"""What a client knows: the present snapshot, and the answers that follow from it, made once each.

A snapshot is replaced as a whole, and with it all answers, so whoever asks sees one or the other.
Nothing here does I/O. What the follower writes and any thread reads meets in :attr:`Memory.cells`.
"""

import random
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from switchgear.clock import ConsoleClock
from switchgear.evaluation.bucketing import BUCKETS, Draw
from switchgear.evaluation.decision_counts import Cell, Counts, Tally
from switchgear.evaluation.decisions import Decision, Question, evaluate, question
from switchgear.evaluation.deduplicated_log import Complaints
from switchgear.evaluation.keys import MAX_KEPT_KEYS, CellKey, kept_key, key_text
from switchgear.evaluation.snapshot import Entry, Snapshot
from switchgear.evaluation.snapshot_view import View, Watcher

MAX_CELLS = 10_000
MAX_EVICTED = 100
MAX_RETIRED = 64
MAX_EPOCHS = 1000
FORCED_REASON = "SWITCHGEAR_FORCE_ENGAGED"


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
        self._subscribers: dict[object, Callable[[], object]] = {}
        self._heard: Snapshot | None = None
        """The console's latest snapshot, received or from disk; not a bootstrap."""
        self._is_confirmed = False
        """True once the console itself has answered."""
        # One that its holder may take again: a signal's handler may ask, too.
        self._lock = threading.RLock()
        self._forced = {switch: _forced(switch, FORCED_REASON) for switch in forced}
        self._retired: deque[dict[CellKey, Cell]] = deque()
        self._evicted: deque[Cell] = deque()
        self._complaints = Complaints()
        self.view = View(None, dict(self._forced))
        self.cells = self.view.cells
        """Those of `view`, one look-up nearer for the hottest path."""

    @property
    def snapshot(self) -> Snapshot | None:
        """The one in force."""
        return self.view.snapshot

    @property
    def is_bootstrapped(self) -> bool:
        """True if the snapshot in force is a bootstrap's, which the console has not confirmed."""
        with self._lock:
            return self.view.snapshot is not self._heard

    def accept(self, snapshot: Snapshot, *, is_live: bool = True) -> bool:
        """Put `snapshot` in force and return True; return False for an older one, which changes
        nothing.

        Versions never go back within an epoch, and an epoch once left stays left. The same version
        may have different entries: an instance that is marked for drills gets its own document.
        `is_live`: received from the console, not read from disk.
        """
        with self._lock:
            before, present = self.view, self._heard
            is_same_epoch = present is not None and snapshot.epoch == present.epoch
            if present is not None and is_same_epoch and snapshot.version < present.version:
                return False
            is_left = not is_same_epoch and snapshot.epoch in self.left_epochs
            if not is_left:
                if present is not None and not is_same_epoch:
                    self.left_epochs = (*self.left_epochs, present.epoch)[-MAX_EPOCHS:]
                self._is_confirmed = self._is_confirmed or is_live
                if not self._confirm(snapshot.document):
                    self._heard = snapshot
                    self._show(snapshot)
            after = self.view
        # A log handler may wait for a thread that waits for the lock.
        if is_left:
            self._complaints.left_epoch(snapshot.epoch, None if present is None else present.mark)
        elif before.snapshot is not None and snapshot.epoch != before.snapshot.epoch:
            now = self.clock.release_now()
            stopped = before.stopped_switches(now)
            released = stopped - after.stopped_switches(now)
            mark = before.snapshot.mark
            self._complaints.released_by_epoch(stopped, released, mark, snapshot.mark)
        return not is_left

    def confirm(self, document: bytes) -> bool:
        """Record that the console sent `document`: return True if it is in force already, which
        changes nothing else."""
        with self._lock:
            is_same = self._confirm(document)
            self._is_confirmed = self._is_confirmed or is_same
            return is_same

    def bootstrap(self, snapshot: Snapshot) -> bool:
        """Put `snapshot` in force until the console answers, whatever it answers then.

        Return False if something better is known: a snapshot from the console, or a copy on disk
        that is of another epoch or not older.
        """
        with self._lock:
            copy = self._heard
            if self._is_confirmed or snapshot.epoch in self.left_epochs:
                return False
            if copy is not None and (
                snapshot.epoch != copy.epoch or snapshot.version <= copy.version
            ):
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
        if type(experiments) is list:
            experiments = tuple(experiments)
        key: CellKey | None = (segment, feature, experiments)
        try:
            cell = view.cells.get(key)  # type: ignore[arg-type]
            if cell is None and (key := kept_key((segment, feature, experiments))) is not None:
                cell = view.cells.get(key)
        except Exception:  # Something that can't be looked up.
            cell = key = None
        if cell is None:
            asked = question(segment, feature, experiments)
            if not asked.is_known:
                self._complaints.wrong_question(asked)
            cell = self._keep(view, key, Cell(asked, self._constant(view, asked)))
        decision = cell.decision
        if decision is not None:
            tick = cell.tick
        else:
            tally = self._evaluated(view, cell, targeting_key)
            decision, tick = tally.decision, tally.tick
        if cell.is_kept and view is self.view:
            tick()
        else:
            self.counts.add(cell.question, decision)
        return decision

    def decide_again(
        self, segment: object, feature: object, experiments: object, targeting_key: object
    ) -> Decision:
        """Answer again for a call that was allowed, without counting it. Never raises.

        Without a targeting key a ramping switch does not block: it was decided at random already.
        """
        view = self.view
        cell = view.kept_cell((segment, feature, experiments))
        if cell is not None and cell.decision is not None:
            return cell.decision
        asked = question(segment, feature, experiments) if cell is None else cell.question
        key = None if targeting_key is None else self._text(targeting_key)
        blocking = evaluate(
            asked.switch_ids, view.entries, key, now=self.clock.release_now(), draw=_always_allow
        )
        return self._decision(view, asked, blocking)

    def subscribe(self, callback: Callable[[], object]) -> Callable[[], object]:
        """Call `callback` after each change of the view, in the thread that makes it: it must
        neither block nor raise. Return a function that unsubscribes it. For waiting calls."""
        key = object()
        self._subscribers[key] = callback
        return lambda: self._subscribers.pop(key, None)

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
        self._retired.clear()
        self._evicted.clear()
        self._subscribers = {}  # Their threads and event loops are the parent's.
        self.view = View(self.view.snapshot, self.view.entries)
        self.cells = self.view.cells

    def _confirm(self, document: bytes) -> bool:
        shown = self.view.snapshot
        if shown is None or shown.document != document:
            return False
        self._heard = shown
        return True

    def _show(self, snapshot: Snapshot | None) -> None:
        before = self.view
        self._fold()
        self._retire(before.cells)
        entries = {} if snapshot is None else snapshot.entries
        self.view = View(snapshot, {**entries, **self._forced})
        self.cells = self.view.cells
        for watcher in self.watchers:
            watcher(before, self.view)
        for callback in list(self._subscribers.values()):
            callback()

    def _retire(self, cells: dict[CellKey, Cell]) -> None:
        """Kept for a while: a thread that waits for its turn may be about to count in it."""
        self._retired.append(cells)
        while len(self._retired) > MAX_RETIRED or (
            len(self._retired) > 1 and sum(map(len, self._retired)) > MAX_CELLS
        ):
            self._retired.popleft()

    def _fold(self) -> None:
        """A call that is just being counted in cells that were replaced is found the next time."""
        for cell in list(self._evicted):
            self._count(cell)
        for cells in (self.view.cells, *self._retired):
            for cell in list(cells.values()):
                self._count(cell)

    def _count(self, cell: Cell) -> None:
        for tally in cell.tallies():
            self.counts.add(cell.question, tally.decision, tally.take())

    def _keep(self, view: View, key: CellKey | None, cell: Cell) -> Cell:
        """Cache `cell` for `key` if that is possible without waiting; return the cell to count
        in."""
        asked = cell.question
        if key is None or not asked.is_known or len(asked.switch_ids) > MAX_KEPT_KEYS:
            return cell
        # Nobody who asks waits: for instance while all cells are counted, or replaced.
        if not self._lock.acquire(blocking=False):
            return cell
        try:
            if view is not self.view:
                return cell
            kept = view.cells.setdefault(key, cell)
            if kept is cell:
                cell.is_kept = True
                view.order.append(key)
                self._make_room(view)
            return kept
        finally:
            self._lock.release()

    def _make_room(self, view: View) -> None:
        if len(view.order) > MAX_CELLS:
            evicted = view.cells.pop(view.order.popleft(), None)
            if evicted is not None:
                evicted.is_kept = False  # Guards that hold it decide anew.
                self._evicted.append(evicted)
        # Somebody may just be counting a call in one that was evicted: it is looked at later.
        if len(self._evicted) > MAX_EVICTED:
            self._count(self._evicted.popleft())

    def _evaluated(self, view: View, cell: Cell, targeting_key: object) -> Tally:
        """What this very call is told."""
        entries, asked = view.entries, cell.question
        key = None if targeting_key is None else self._text(targeting_key)
        now = self.clock.release_now()
        blocking = evaluate(asked.switch_ids, entries, key, now=now, draw=self._draw)
        switch = None if blocking is None else blocking.id
        tally = cell.by_switch.get(switch)
        if tally is None:
            decision = self._decision(view, asked, blocking)
            tally = cell.by_switch.setdefault(switch, Tally(decision))
        return tally

    def _text(self, targeting_key: object) -> str | None:
        """Return the text of a targeting key of any type. Return None, which makes the decision
        random, if the conversion raises."""
        try:
            text = key_text(targeting_key)
            return str(targeting_key) if text is None else text
        except Exception as error:
            self._complaints.wrong_targeting_key(targeting_key, error)
            return None

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
        return view.flows if asked.is_known else replace(view.flows, known=False)


def _always_allow() -> int:
    """A replacement for the random draw that lets every ramp through."""
    return -1


def _forced(switch_id: str, reason: str) -> Entry:
    return Entry(switch_id, "engaged", 0, "", reason, None, "hold")
