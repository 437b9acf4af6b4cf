"""The last good snapshot on disk, one file for all processes of a service and console."""

from switchgear.console.file_cache import (
    RECHECK_SECONDS,
    CachedDocument,
    FileCache,
    find_file_name,
)
from switchgear.evaluation.snapshot import parse_snapshot
from switchgear.evaluation.snapshot_store import MAX_EPOCHS, SnapshotStore
from switchgear.settings import Settings


class SnapshotCache:
    """The snapshot file of one client. Not thread-safe. Does nothing without a `state_dir`."""

    def __init__(self, settings: Settings, recheck_seconds: float = RECHECK_SECONDS) -> None:
        self.name = find_file_name(settings, settings.service, "snapshot")
        self._cache = FileCache(settings.state_dir, self.name, recheck_seconds)

    def restore(self, store: SnapshotStore) -> None:
        """Put the cached snapshot in force, if there is a valid one. Never raises."""

        def use(found: CachedDocument) -> None:
            snapshot = parse_snapshot(found.document)
            store.left_epochs = found.left_epochs[-MAX_EPOCHS:]
            store.accept(snapshot, is_live=False)

        self._cache.restore(use)

    def save(self, store: SnapshotStore) -> None:
        """Write the snapshot in force, unless another process saved a newer one. Never raises."""
        snapshot, left = store.snapshot, store.left_epochs
        if snapshot is not None:
            self._cache.save(
                CachedDocument(snapshot.epoch, snapshot.version, left, snapshot.document)
            )

    def save_if_missing(self, store: SnapshotStore) -> None:
        """Repeat :meth:`save` if it failed or the file is gone. Never raises."""
        if self._cache.is_missing():
            self.save(store)
