"""The last good snapshot on disk: what is known at a start without the console.

One file for each console and service, of which all its processes write.
"""

from dataclasses import dataclass

from switchgear.evaluation.snapshot import Snapshot, read
from switchgear.evaluation.snapshot_store import MAX_EPOCHS, Memory
from switchgear.following.copies import AGAIN_SECONDS, Copy, Found, Unusable, copy_name
from switchgear.settings import Settings


@dataclass(frozen=True)
class Kept:
    """What a file holds; `epoch` and `version` are the document's."""

    epoch: str
    version: int
    left_epochs: tuple[str, ...]
    document: bytes

    @classmethod
    def of(cls, found: Found) -> "Kept":
        """Raises :class:`Unusable`."""
        try:
            left = tuple(str(one) for one in found.told["left_epochs"])[-MAX_EPOCHS:]
            return cls(found.told["epoch"], found.told["version"], left, found.document)
        except (KeyError, TypeError):
            raise Unusable("it is damaged") from None

    def is_ahead_of(self, snapshot: Snapshot) -> bool:
        """Whether another process knew better than we do."""
        if self.epoch == snapshot.epoch:
            return self.version > snapshot.version
        return snapshot.epoch in self.left_epochs


class Disk:
    """The copy of one client; of one thread at a time. Without a `state_dir` it does nothing."""

    def __init__(self, settings: Settings, again_seconds: float = AGAIN_SECONDS) -> None:
        self.name = copy_name(settings, settings.service, "snapshot")
        self._copy = Copy(settings.state_dir, self.name, again_seconds)

    def restore(self, memory: Memory) -> None:
        """Put the copy in force, if there is a sound one. Never raises."""

        def use(found: Found) -> None:
            kept = Kept.of(found)
            snapshot = read(kept.document)
            memory.left_epochs = kept.left_epochs
            memory.accept(snapshot, is_live=False)

        self._copy.restore(use)

    def keep(self, memory: Memory) -> None:
        """Write down what is in force, unless another process has something newer. Never raises."""
        snapshot, left = memory.snapshot, memory.left_epochs
        if snapshot is None or not self._copy.is_kept:
            return

        def is_there(found: Found) -> bool:
            kept = Kept.of(found)
            return kept.is_ahead_of(snapshot) or kept.document == snapshot.document

        told = {"epoch": snapshot.epoch, "version": snapshot.version, "left_epochs": list(left)}
        self._copy.keep(told, snapshot.document, is_there)

    def see_to(self, memory: Memory) -> None:
        """Now and then: as :meth:`keep` if that went wrong, or the copy is gone. Never raises."""
        if self._copy.is_missing():
            self.keep(memory)
