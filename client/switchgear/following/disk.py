"""The last good snapshot on disk: what is known at a start without the console.

One file for each console and service, of which all its processes write. Its first line says what it
holds, with a checksum; the rest is the document as it came. Nothing that a disk or somebody else on
the machine does to it is worse than not having it.
"""

import contextlib
import hashlib
import json
import logging
import os
import re
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from switchgear.deciding.memory import MOST_EPOCHS, Memory
from switchgear.deciding.snapshot import MOST_BYTES, Snapshot, read
from switchgear.settings import Settings

try:
    import fcntl
except ImportError:  # pragma: no cover - a system without it keeps nothing.
    fcntl = None  # type: ignore[assignment]

FORMAT = 1
MOST_HEADER_BYTES = 2**17
LOCK_SECONDS = 1.0
AGAIN_SECONDS = 60.0
"""Until it is looked whether the copy is there."""
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
_LOCK = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)

log = logging.getLogger("switchgear")


class Unusable(Exception):
    """What is found there can't be trusted, or not be read; the message says why."""


@dataclass(frozen=True)
class Kept:
    """What a file holds; `epoch` and `version` are the document's."""

    epoch: str
    version: int
    left_epochs: tuple[str, ...]
    document: bytes

    def is_ahead_of(self, snapshot: Snapshot) -> bool:
        """Whether another process knew better than we do."""
        if self.epoch == snapshot.epoch:
            return self.version > snapshot.version
        return snapshot.epoch in self.left_epochs


class Disk:
    """The copy of one client; of one thread at a time. Without a `state_dir` it does nothing."""

    def __init__(self, settings: Settings, again_seconds: float = AGAIN_SECONDS) -> None:
        self._folder = settings.state_dir if fcntl is not None else None
        self.name = file_name(settings.url or "", settings.service)
        self._complained = False
        self._again_seconds = again_seconds
        self._again_at = 0.0

    def restore(self, memory: Memory) -> None:
        """Put the copy in force, if there is a sound one. Never raises."""
        if self._folder is None:
            return
        with self._complaining("read"):
            try:
                with self._opened() as folder:
                    kept = self._read(folder)
            except FileNotFoundError:
                return  # The first start here.
            snapshot = read(kept.document)
            memory.left_epochs = kept.left_epochs
            memory.accept(snapshot)

    def keep(self, memory: Memory) -> None:
        """Write down what is in force, unless another process has something newer. Never raises."""
        snapshot, left = memory.snapshot, memory.left_epochs
        if self._folder is None or snapshot is None:
            return
        kept = Kept(snapshot.epoch, snapshot.version, left, snapshot.document)
        self._again_at = time.monotonic() + self._again_seconds
        with self._complaining("written"):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._opened() as folder, self._locked(folder):
                if not self._has(folder, snapshot):
                    self._write(folder, kept)
            self._complained = False

    def see_to(self, memory: Memory) -> None:
        """Now and then: as :meth:`keep` if that went wrong, or the copy is gone. Never raises."""
        if self._folder is None or time.monotonic() < self._again_at:
            return
        self._again_at = time.monotonic() + self._again_seconds
        if self._complained or not os.path.lexists(self._folder / self.name):
            self.keep(memory)

    @contextlib.contextmanager
    def _complaining(self, what: str) -> Iterator[None]:
        """Trouble is told once, until it is over."""
        try:
            yield
        except (OSError, Unusable, ValueError, RecursionError) as error:
            if not self._complained:
                why = error.strerror if isinstance(error, OSError) else str(error)
                log.warning(
                    "switchgear: the copy in %s is not %s: %s",
                    self._folder,
                    what,
                    why or type(error).__name__,
                )
            self._complained = True

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        """The folder, if it is ours alone; what follows is looked up in it and nowhere else."""
        assert self._folder is not None  # noqa: S101 - of the callers
        descriptor = os.open(self._folder, _READ | getattr(os, "O_DIRECTORY", 0))
        try:
            _check_ours(os.fstat(descriptor), "the folder")
            yield descriptor
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def _locked(self, folder: int) -> Iterator[None]:
        """While inside, no other process writes. One that was stopped meanwhile is not waited
        for."""
        descriptor = os.open(f"{self.name}.lock", _LOCK, 0o600, dir_fd=folder)
        try:
            _check_ours(os.fstat(descriptor), "the lock")
            until = time.monotonic() + LOCK_SECONDS
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > until:
                        raise Unusable("another process has locked it") from None
                    time.sleep(0.02)
            try:
                yield
            finally:
                # By closing alone it would last as long as a child that was forked just now.
                fcntl.flock(descriptor, fcntl.LOCK_UN)
        finally:
            os.close(descriptor)

    def _read(self, folder: int) -> Kept:
        descriptor = os.open(self.name, _READ, dir_fd=folder)
        with open(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            _check_ours(found, "it")
            if not stat.S_ISREG(found.st_mode):
                raise Unusable("it is no file")
            return _parse(file.read(MOST_HEADER_BYTES + MOST_BYTES + 1))

    def _has(self, folder: int, snapshot: Snapshot) -> bool:
        """Whether it is there already, or something newer. What is damaged is not there."""
        try:
            kept = self._read(folder)
        except (OSError, Unusable, ValueError, RecursionError):
            return False
        return kept.is_ahead_of(snapshot) or kept.document == snapshot.document

    def _write(self, folder: int, kept: Kept) -> None:
        """As a whole or not at all, whenever the machine fails."""
        passing = f"{self.name}.new"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(passing, dir_fd=folder)
        descriptor = os.open(passing, _WRITE, 0o600, dir_fd=folder)
        try:
            with open(descriptor, "wb") as file:
                file.write(_header(kept))
                file.write(kept.document)
                file.flush()
                os.fsync(descriptor)
            os.replace(passing, self.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(passing, dir_fd=folder)
            raise
        os.fsync(folder)


def file_name(url: str, service: str) -> str:
    """One for each console and service, to be recognised by a person."""
    digest = hashlib.sha256(f"{url.rstrip('/')}\n{service}".encode()).hexdigest()
    return f"{re.sub(r'[^A-Za-z0-9._-]', '-', service)[:60]}-{digest[:16]}.snapshot"


def _check_ours(found: os.stat_result, what: str) -> None:
    if found.st_uid != os.geteuid():
        raise Unusable(f"{what} belongs to somebody else")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise Unusable(f"others may write to {what}")


def _header(kept: Kept) -> bytes:
    told: dict[str, Any] = {
        "format": FORMAT,
        "epoch": kept.epoch,
        "version": kept.version,
        "left_epochs": list(kept.left_epochs),
    }
    return json.dumps({**told, "sha256": _checksum(told, kept.document)}).encode() + b"\n"


def _parse(content: bytes) -> Kept:
    first, end, document = content.partition(b"\n")
    told = json.loads(first) if end else None
    if not isinstance(told, dict):
        raise Unusable("it is damaged")
    checksum = told.pop("sha256", None)
    if told.get("format") != FORMAT:
        raise Unusable("it is of another version")
    if checksum != _checksum(told, document):
        raise Unusable("it is damaged")
    try:
        left = tuple(str(one) for one in told["left_epochs"])
        return Kept(told["epoch"], told["version"], left[-MOST_EPOCHS:], document)
    except (KeyError, TypeError):
        raise Unusable("it is damaged") from None


def _checksum(told: Mapping[str, Any], document: bytes) -> str:
    digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode() + b"\n")
    digest.update(document)
    return digest.hexdigest()
