"""The last good snapshot on disk, one file for all processes of a service and console."""

from dataclasses import dataclass

from switchgear.console.file_cache import (
    RECHECK_SECONDS,
    CachedDocument,
    FileCache,
    UnusableFile,
    find_file_name,
)
from switchgear.evaluation.snapshot import Snapshot, parse_snapshot
from switchgear.evaluation.snapshot_store import MAX_EPOCHS, SnapshotStore
from switchgear.settings import Settings


@dataclass(frozen=True)
class CachedSnapshot:
    """The content of the file. `epoch` and `version` are those of the snapshot in `document`."""

    epoch: str
    version: int
    left_epochs: tuple[str, ...]
    document: bytes

    @classmethod
    def from_document(cls, found: CachedDocument) -> "CachedSnapshot":
        """Return the content; raise :class:`UnusableFile` if the metadata are incomplete."""
        try:
            left = tuple(str(one) for one in found.metadata["left_epochs"])[-MAX_EPOCHS:]
            return cls(found.metadata["epoch"], found.metadata["version"], left, found.document)
        except (KeyError, TypeError):
            raise UnusableFile("it is damaged") from None

    def is_ahead_of(self, snapshot: Snapshot) -> bool:
        """Return True if the cached snapshot is newer than `snapshot`."""
        if self.epoch == snapshot.epoch:
            return self.version > snapshot.version
        return snapshot.epoch in self.left_epochs


class SnapshotCache:
    """The snapshot file of one client. Not thread-safe. Does nothing without a `state_dir`."""

    def __init__(self, settings: Settings, recheck_seconds: float = RECHECK_SECONDS) -> None:
        self.name = find_file_name(settings, settings.service, "snapshot")
        self._cache = FileCache(settings.state_dir, self.name, recheck_seconds)

    def restore(self, store: SnapshotStore) -> None:
        """Put the cached snapshot in force, if there is a valid one. Never raises."""

        def use(found: CachedDocument) -> None:
            cached = CachedSnapshot.from_document(found)
            snapshot = parse_snapshot(cached.document)
            store.left_epochs = cached.left_epochs
            store.accept(snapshot, is_live=False)

        self._cache.restore(use)

    def save(self, store: SnapshotStore) -> None:
        """Write the snapshot in force, unless another process saved a newer one. Never raises."""
        snapshot, left = store.snapshot, store.left_epochs
        if snapshot is None or not self._cache.is_enabled:
            return

        def is_current(found: CachedDocument) -> bool:
            cached = CachedSnapshot.from_document(found)
            return cached.is_ahead_of(snapshot) or cached.document == snapshot.document

        metadata = {"epoch": snapshot.epoch, "version": snapshot.version, "left_epochs": list(left)}
        self._cache.save(metadata, snapshot.document, is_current)

    def save_if_missing(self, store: SnapshotStore) -> None:
        """Repeat :meth:`save` if it failed or the file is gone. Never raises."""
        if self._cache.is_missing():
            self.save(store)
