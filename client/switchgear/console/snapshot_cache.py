"""The last good snapshot on disk: what is known at a start without the console.

One file for each console and service, of which all its processes write.
"""

from dataclasses import dataclass

from switchgear.console.file_cache import (
    RECHECK_SECONDS,
    CachedDocument,
    FileCache,
    UnusableFile,
    find_file_name,
)
from switchgear.evaluation.snapshot_store import MAX_EPOCHS, Memory
from switchgear.evaluation.snapshot import Snapshot, read
from switchgear.settings import Settings


@dataclass(frozen=True)
class CachedSnapshot:
    """What a file holds; `epoch` and `version` are the document's."""

    epoch: str
    version: int
    left_epochs: tuple[str, ...]
    document: bytes

    @classmethod
    def from_document(cls, found: CachedDocument) -> "CachedSnapshot":
        """Raises :class:`Unusable`."""
        try:
            left = tuple(str(one) for one in found.metadata["left_epochs"])[-MAX_EPOCHS:]
            return cls(found.metadata["epoch"], found.metadata["version"], left, found.document)
        except (KeyError, TypeError):
            raise UnusableFile("it is damaged") from None

    def is_ahead_of(self, snapshot: Snapshot) -> bool:
        """Whether another process knew better than we do."""
        if self.epoch == snapshot.epoch:
            return self.version > snapshot.version
        return snapshot.epoch in self.left_epochs


class SnapshotCache:
    """The copy of one client; of one thread at a time. Without a `state_dir` it does nothing."""

    def __init__(self, settings: Settings, again_seconds: float = RECHECK_SECONDS) -> None:
        self.name = find_file_name(settings, settings.service, "snapshot")
        self._cache = FileCache(settings.state_dir, self.name, again_seconds)

    def restore(self, memory: Memory) -> None:
        """Put the copy in force, if there is a sound one. Never raises."""

        def use(found: CachedDocument) -> None:
            kept = CachedSnapshot.from_document(found)
            snapshot = read(kept.document)
            memory.left_epochs = kept.left_epochs
            memory.accept(snapshot, is_live=False)

        self._cache.restore(use)

    def save(self, memory: Memory) -> None:
        """Write down what is in force, unless another process has something newer. Never raises."""
        snapshot, left = memory.snapshot, memory.left_epochs
        if snapshot is None or not self._cache.is_enabled:
            return

        def is_there(found: CachedDocument) -> bool:
            kept = CachedSnapshot.from_document(found)
            return kept.is_ahead_of(snapshot) or kept.document == snapshot.document

        told = {"epoch": snapshot.epoch, "version": snapshot.version, "left_epochs": list(left)}
        self._cache.save(told, snapshot.document, is_there)

    def save_if_missing(self, memory: Memory) -> None:
        """Now and then: as :meth:`keep` if that went wrong, or the copy is gone. Never raises."""
        if self._cache.is_missing():
            self.save(memory)
