"""A private file with the console's latest document, for starts without the console.

The first line is a header with a checksum, the rest the document as received. A damaged, foreign or
unreadable file is treated as absent.
"""

import contextlib
import hashlib
import json
import logging
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from switchgear.console.signatures import make_parser
from switchgear.evaluation.emergency_orders import format_orders, parse_orders
from switchgear.evaluation.snapshot import MAX_SERVED_BYTES, InvalidSnapshot, SwitchEntry
from switchgear.evaluation.snapshot_store import MAX_EPOCHS, SnapshotStore
from switchgear.settings import Settings

try:
    import fcntl
except ImportError:  # pragma: no cover - without it, no file is written.
    fcntl = None  # type: ignore[assignment]

FORMAT = 1
MAX_HEADER_BYTES = 2**17
LOCK_SECONDS = 1.0
RECHECK_SECONDS = 60.0
"""Interval of the checks whether the file still exists."""
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
_LOCK = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)

log = logging.getLogger("switchgear")


class UnusableFile(Exception):
    """Raised for a file that can't be trusted or read; the message gives the reason."""


@dataclass(frozen=True)
class CachedDocument:
    """A document of the console, with its `epoch` and `version`.

    Documents of the epochs in `left_epochs` are older; a client that has applied this one refuses
    them. `signature` is "" for a document that came without one.
    """

    epoch: str
    version: int
    left_epochs: tuple[str, ...]
    document: bytes
    signature: str = ""

    def supersedes(self, other: "CachedDocument") -> bool:
        """Return True if this document is the same as `other`, or a newer one."""
        if self.epoch != other.epoch:
            return other.epoch in self.left_epochs
        is_same = self.document == other.document and (self.signature or not other.signature)
        return self.version > other.version or bool(is_same)


class FileCache:
    """One cached file. Not thread-safe. Without a `folder` all methods do nothing."""

    def __init__(
        self, folder: Path | None, name: str, recheck_seconds: float = RECHECK_SECONDS
    ) -> None:
        self.name = name
        self._folder = folder if fcntl is not None else None
        self._is_warned = False
        self._recheck_seconds = recheck_seconds
        self._recheck_at = 0.0

    def restore(self, use: Callable[[CachedDocument], object]) -> None:
        """Call `use` with the cached document, if there is a valid one. Never raises.

        `use` may reject the document by an error, which is logged.
        """
        if self._folder is None:
            return
        with self._log_errors("read"):
            try:
                with self._open_folder(self._folder) as folder:
                    found = self._read_file(folder)
            except FileNotFoundError:
                return  # This is the first start.
            use(found)

    def save(self, latest: CachedDocument) -> None:
        """Write `latest`, unless another process has saved it or a newer document. Never raises."""

        def replace(found: CachedDocument | None) -> CachedDocument | None:
            return None if found is not None and found.supersedes(latest) else latest

        self.update(replace)

    def update(self, replace: Callable[[CachedDocument | None], CachedDocument | None]) -> None:
        """Write the document that `replace` returns for the one in the file. Never raises.

        `replace` gets None if there is no valid document, and returns None to leave the file as it
        is.
        """
        if self._folder is None:
            return
        self._recheck_at = time.monotonic() + self._recheck_seconds
        with self._log_errors("written"):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._open_folder(self._folder) as folder, self._lock(folder):
                latest = replace(self._read_if_valid(folder))
                if latest is not None:
                    self._write(folder, latest)
            self._is_warned = False

    def is_missing(self) -> bool:
        """Return True if the file must be saved again: it is gone, or the last :meth:`save` failed.

        Always False within `recheck_seconds` of the last check.
        """
        if self._folder is None or time.monotonic() < self._recheck_at:
            return False
        self._recheck_at = time.monotonic() + self._recheck_seconds
        return self._is_warned or not self.exists()

    def exists(self) -> bool:
        return self._folder is not None and os.path.lexists(self._folder / self.name)

    @contextlib.contextmanager
    def _log_errors(self, what: str) -> Iterator[None]:
        """Context manager: log an error of the block instead of raising it.

        Only the first error in a series of failures is logged.
        """
        try:
            yield
        except (OSError, UnusableFile, ValueError, RecursionError) as error:
            if not self._is_warned:
                why = error.strerror if isinstance(error, OSError) else str(error)
                log.warning(
                    "switchgear: the cached copy in %s was not %s: %s",
                    self._folder,
                    what,
                    why or type(error).__name__,
                )
            self._is_warned = True

    @contextlib.contextmanager
    def _open_folder(self, path: Path) -> Iterator[int]:
        """Context manager: open the folder, if it belongs to this user alone; yield its descriptor.

        Files are looked up relative to the descriptor, so the folder can't be swapped meanwhile.
        """
        descriptor = os.open(path, _READ | getattr(os, "O_DIRECTORY", 0))
        try:
            _check_owner(os.fstat(descriptor), "the folder")
            yield descriptor
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def _lock(self, folder: int) -> Iterator[None]:
        """Context manager: hold the file lock that all processes take to write the file.

        Raise :class:`UnusableFile` after waiting `LOCK_SECONDS`.
        """
        descriptor = os.open(f"{self.name}.lock", _LOCK, 0o600, dir_fd=folder)
        try:
            _check_owner(os.fstat(descriptor), "the lock")
            until = time.monotonic() + LOCK_SECONDS
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > until:
                        raise UnusableFile("another process has locked it") from None
                    time.sleep(0.02)
            try:
                yield
            finally:
                # Closing alone would leave the lock to a child forked meanwhile.
                fcntl.flock(descriptor, fcntl.LOCK_UN)
        finally:
            os.close(descriptor)

    def _read_file(self, folder: int) -> CachedDocument:
        descriptor = os.open(self.name, _READ, dir_fd=folder)
        with open(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            _check_owner(found, "it")
            if not stat.S_ISREG(found.st_mode):
                raise UnusableFile("not a regular file")
            return _parse(file.read(MAX_HEADER_BYTES + MAX_SERVED_BYTES + 1))

    def _read_if_valid(self, folder: int) -> CachedDocument | None:
        try:
            return self._read_file(folder)
        except (OSError, UnusableFile, ValueError, RecursionError):
            return None

    def _write(self, folder: int, found: CachedDocument) -> None:
        """Replace the file atomically and durably."""
        temporary = f"{self.name}.new"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        descriptor = os.open(temporary, _WRITE, 0o600, dir_fd=folder)
        try:
            with open(descriptor, "wb") as file:
                file.write(_format_header(found))
                file.write(found.document)
                file.flush()
                os.fsync(descriptor)
            os.replace(temporary, self.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise
        os.fsync(folder)


class SnapshotCache:
    """The files of one client with the snapshot and with the emergency orders in force.

    A snapshot may lack orders that other data planes know. Not thread-safe. Does nothing without a
    `state_dir`.
    """

    def __init__(self, settings: Settings, recheck_seconds: float = RECHECK_SECONDS) -> None:
        self.name = find_file_name(settings, settings.service, "snapshot")
        self._cache = FileCache(settings.state_dir, self.name, recheck_seconds)
        self._parse = make_parser(settings.public_keys)
        self._is_verified = settings.public_keys is not None
        orders = find_file_name(settings, settings.service, "orders")
        self._orders = FileCache(settings.state_dir, orders, recheck_seconds)

    def restore(self, store: SnapshotStore) -> None:
        """Put the cached snapshot and orders in force, if there are valid ones. Never raises."""

        def use(found: CachedDocument) -> None:
            store.left_epochs = found.left_epochs[-MAX_EPOCHS:]
            store.accept(self._parse(found.document, found.signature, {}), is_live=False)

        def use_orders(found: CachedDocument) -> None:
            store.restore_orders(parse_orders(found.document))

        self._cache.restore(use)
        self._orders.restore(use_orders)

    def save(self, store: SnapshotStore) -> None:
        """Write the snapshot in force, unless another process saved a newer one. Never raises.

        Write the emergency orders in force, too, and keep those that another process has saved.
        """
        self._save_orders(store)
        snapshot, left = store.snapshot, store.left_epochs
        if snapshot is None:
            return
        latest = CachedDocument(
            *(snapshot.epoch, snapshot.version, left, snapshot.document, snapshot.signature)
        )

        def replace(found: CachedDocument | None) -> CachedDocument | None:
            is_newer = found is not None and found.supersedes(latest) and self._is_usable(found)
            return None if is_newer else latest

        self._cache.update(replace)

    def save_if_missing(self, store: SnapshotStore) -> None:
        """Repeat :meth:`save` if it failed or the file is gone. Never raises."""
        has_orders = bool(store.view.orders.entries)
        if self._cache.is_missing() or (has_orders and self._orders.is_missing()):
            self.save(store)

    def _is_usable(self, found: CachedDocument) -> bool:
        """Return True if this client accepts `found`, which another process has saved."""
        if not self._is_verified:
            return True
        try:
            self._parse(found.document, found.signature, {})
        except InvalidSnapshot:
            return False
        return True

    def _save_orders(self, store: SnapshotStore) -> None:
        orders, now = store.view.orders, store.clock.now()

        def replace(found: CachedDocument | None) -> CachedDocument | None:
            saved: list[SwitchEntry] = []
            if found is not None:
                with contextlib.suppress(ValueError):  # A later version's file is replaced.
                    saved = parse_orders(found.document)
            document = format_orders(orders.to_save(saved, now))
            is_saved = found is not None and found.document == document
            return None if is_saved else CachedDocument("", 0, (), document)

        if orders.entries or self._orders.exists():
            self._orders.update(replace)


def file_name(url: str, service: str, kind: str) -> str:
    """Return a readable file name, unique for each console, service and kind of document."""
    digest = hashlib.sha256(f"{url.rstrip('/')}\n{service}".encode()).hexdigest()
    return f"{re.sub(r'[^A-Za-z0-9._-]', '-', service)[:60]}-{digest[:16]}.{kind}"


def find_file_name(settings: Settings, service: str, kind: str) -> str:
    """Return the name of the cached file for this service and kind of document.

    It is :func:`file_name` of the console's URL. Settings without a URL use the only existing file
    of this service and kind; if there are none or several, the name for an empty URL.
    """
    if settings.url is not None or settings.state_dir is None:
        return file_name(settings.url or "", service, kind)
    pattern = re.escape(file_name("", service, kind)[: -len(f"{'0' * 16}.{kind}")])
    try:
        names = os.listdir(settings.state_dir)
    except OSError:
        names = []
    there = [name for name in names if re.fullmatch(rf"{pattern}[0-9a-f]{{16}}\.{kind}", name)]
    return there[0] if len(there) == 1 else file_name("", service, kind)


def _check_owner(found: os.stat_result, what: str) -> None:
    if found.st_uid != os.geteuid():
        raise UnusableFile(f"{what} belongs to another user")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UnusableFile(f"other users can write to {what}")


def _format_header(found: CachedDocument) -> bytes:
    metadata = {
        "format": FORMAT,
        "epoch": found.epoch,
        "version": found.version,
        "left_epochs": found.left_epochs,
        **({"signature": found.signature} if found.signature else {}),
    }
    return json.dumps({**metadata, "sha256": checksum(metadata, found.document)}).encode() + b"\n"


def _parse(content: bytes) -> CachedDocument:
    first, end, document = content.partition(b"\n")
    metadata = json.loads(first) if end else None
    if not isinstance(metadata, dict):
        raise UnusableFile("the file is damaged")
    given = metadata.pop("sha256", None)
    if metadata.get("format") != FORMAT:
        raise UnusableFile("the file has another format version")
    epoch, version, left = (metadata.get(name) for name in ("epoch", "version", "left_epochs"))
    is_sound = given == checksum(metadata, document)
    if is_sound and isinstance(epoch, str) and isinstance(version, int) and isinstance(left, list):
        signature = str(metadata.get("signature", ""))
        return CachedDocument(epoch, version, tuple(map(str, left)), document, signature)
    raise UnusableFile("the file is damaged")


def checksum(metadata: Mapping[str, Any], document: bytes) -> str:
    """Return the SHA-256 of the document and of its header without the checksum."""
    digest = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode() + b"\n")
    digest.update(document)
    return digest.hexdigest()
