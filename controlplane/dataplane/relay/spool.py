"""A relay's spool: what its upstream has not accepted yet, on disk. Blocking: use a thread.

Each process has a folder of its own, `spool/<process>`, which it locks; a later process continues
with a free one, under the same id. A folder has one file per batch, named by the batch's number.
Records are appended to the last file, and a file is removed once the upstream has accepted it.

`append` returns when its records are on disk. A record that was cut off by a crash was never
acknowledged, and is dropped.
"""

import fcntl
import os
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from uuid import UUID, uuid4

import orjson
import structlog

from controlplane.core.private_files import sync_folder

MAX_BYTES = 64 * 1024 * 1024
RESERVED_BYTES = 4 * 1024 * 1024
"""Room beyond the limit for presences, acknowledgements and `/check` counts."""
MAX_SEGMENT_BYTES = 1024 * 1024
"""Size after which a batch ends; a batch with one record may be larger."""
MAX_SEGMENT_RECORDS = 500
REPORT, NOTES, BATCH = b"report", b"notes", b"batch"
_SUFFIX = ".batch"

log = structlog.get_logger(__name__)


class SpoolFull(Exception):
    """Raised if the records would exceed the spool's size."""


class Record(NamedTuple):
    """A record of the spool: JSON without line breaks, of one of the kinds above."""

    kind: bytes
    content: bytes


@dataclass
class SpoolBatch:
    """The records of a file by kind: reports and notes of this relay, and batches of others."""

    seq: int
    reports: list[bytes] = field(default_factory=list)
    notes: list[bytes] = field(default_factory=list)
    batches: list[bytes] = field(default_factory=list)


class Spool:
    """The spool in `folder`, which must be locked by `lock` (a descriptor). Safe for threads."""

    def __init__(self, folder: Path, lock: int, max_bytes: int = MAX_BYTES) -> None:
        self.process = UUID(folder.name)
        self.root = folder.parent
        self._folder = folder
        self._lock = lock
        self._max_bytes = max_bytes
        self._mutex = threading.Lock()
        self._sizes: dict[int, int] = {}
        """Size of each file by number, oldest first."""
        self._began_at: dict[int, float] = {}
        self._open: tuple[int, int] | None = None
        """Number and descriptor of the file that takes records; None between two batches."""
        self._records = 0
        """Number of records in that file."""
        for path in sorted(folder.glob(f"*{_SUFFIX}")):
            status = path.stat()
            self._sizes[int(path.stem)] = status.st_size
            self._began_at[int(path.stem)] = status.st_mtime

    @classmethod
    def claim(cls, root: Path, max_bytes: int = MAX_BYTES) -> "Spool":
        """Return the spool of this process under `root`: a free one, or a new one."""
        for spool in cls.claim_free(root, max_bytes):
            return spool
        while True:
            folder = root / str(uuid4())
            folder.mkdir(mode=0o700, parents=True)
            sync_folder(root)
            if (lock := _lock(folder)) is not None:
                return cls(folder, lock, max_bytes)

    @classmethod
    def claim_free(cls, root: Path, max_bytes: int = MAX_BYTES) -> "Iterator[Spool]":
        """Yield the spools under `root` that no process has, locked."""
        for folder in sorted(root.glob("*-*-*-*-*")):
            if folder.is_dir() and (lock := _lock(folder)) is not None:
                yield cls(folder, lock, max_bytes)

    @property
    def size_bytes(self) -> int:
        with self._mutex:
            return sum(self._sizes.values())

    def measure(self) -> tuple[int, float]:
        """Return the size in bytes, and the age of the oldest record in seconds."""
        return self.size_bytes, self.oldest_seconds()

    def oldest_seconds(self) -> float:
        """Return the age of the oldest record; 0 if there is none."""
        with self._mutex:
            began = [self._began_at[seq] for seq, size in self._sizes.items() if size]
        return max(0.0, time.time() - min(began)) if began else 0.0

    def append(self, records: Sequence[Record], *, reserved: bool = False) -> None:
        """Store records durably in one batch; with `reserved`, also in the reserved room.

        Reserved ones end their batch, so that no batch has more notes than a message may have.

        Raise :class:`SpoolFull` or OSError if that fails; then none of the records is stored.
        """
        content = b"".join(b"%b %b\n" % record for record in records)
        with self._mutex:
            room = self._max_bytes + (RESERVED_BYTES if reserved else 0)
            if sum(self._sizes.values()) + len(content) > room:
                raise SpoolFull
            if self._open is not None and self._is_large_with(len(content), len(records)):
                self._end_batch()
            seq, file = self._open or self._begin_batch()
            size = self._sizes[seq]
            try:
                view = memoryview(content)
                while view:
                    view = view[os.write(file, view) :]
                os.fsync(file)
            except OSError:
                self._undo(file, size)
                raise
            self._sizes[seq] = size + len(content)
            self._records += len(records)
            if reserved:
                self._end_batch()

    def _is_large_with(self, size: int, records: int) -> bool:
        assert self._open is not None  # noqa: S101 - for the type; the caller checks it.
        is_large = self._sizes[self._open[0]] + size > MAX_SEGMENT_BYTES
        return is_large or self._records + records > MAX_SEGMENT_RECORDS

    def _begin_batch(self) -> tuple[int, int]:
        """Create the next file and remove the empty one before; return its number and file."""
        last = max(self._sizes, default=0)
        path = self._path(last + 1)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        file = os.open(path, flags, 0o600)
        try:
            sync_folder(self._folder)
        except OSError:
            os.close(file)
            raise
        self._open = last + 1, file
        self._sizes[last + 1], self._began_at[last + 1] = 0, time.time()
        self._records = 0
        if self._sizes.get(last) == 0:
            self._remove_file(last)
        return self._open

    def _undo(self, file: int, size: int) -> None:
        """Remove a record that was written in part; if that fails, end the batch.

        The rest of the record is dropped when the batch is read.
        """
        try:
            os.ftruncate(file, size)
        except OSError as error:
            log.warning("spool.undo_failed", error=str(error))
            self._end_batch()

    def _end_batch(self) -> None:
        if self._open is not None:
            os.close(self._open[1])
            self._open = None

    def end_batch(self) -> None:
        """End the last batch if it has records, so that it can be sent."""
        with self._mutex:
            if self._open is not None and self._sizes[self._open[0]]:
                self._end_batch()

    def list_ended(self) -> list[int]:
        """Return the numbers of the batches to send, oldest first."""
        with self._mutex:
            current = None if self._open is None else self._open[0]
            return [seq for seq, size in self._sizes.items() if size and seq != current]

    def size_of(self, seq: int) -> int:
        with self._mutex:
            return self._sizes[seq]

    def read(self, seq: int) -> SpoolBatch:
        """Return an ended batch; raise OSError if it can't be read."""
        batch = SpoolBatch(seq)
        kinds = {REPORT: batch.reports, NOTES: batch.notes, BATCH: batch.batches}
        for line in self._path(seq).read_bytes().splitlines(keepends=True):
            kind, _, content = line.partition(b" ")
            try:
                orjson.loads(content)
                kinds[kind].append(content.removesuffix(b"\n"))
            except (orjson.JSONDecodeError, LookupError):
                log.warning("spool.record_dropped", seq=seq, bytes=len(line))
        return batch

    def remove(self, seq: int) -> None:
        """Remove an ended batch that the upstream has accepted; raise OSError if that fails.

        The last file stays, empty, because its name is the number to continue with.
        """
        with self._mutex:
            if seq == max(self._sizes):
                os.truncate(self._path(seq), 0)
                self._sizes[seq] = 0
            else:
                self._remove_file(seq)

    def close(self) -> None:
        """Release the folder for other processes."""
        with self._mutex:
            self._end_batch()
            os.close(self._lock)

    def _remove_file(self, seq: int) -> None:
        self._path(seq).unlink()
        del self._sizes[seq], self._began_at[seq]

    def _path(self, seq: int) -> Path:
        return self._folder / f"{seq:020}{_SUFFIX}"


def _lock(folder: Path) -> int | None:
    """Return a descriptor that locks a process's folder; None if another process has the lock."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(folder / "lock", flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
