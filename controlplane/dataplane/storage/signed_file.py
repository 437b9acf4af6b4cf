"""A signed file with its previous version and a lock between processes. Blocking: use a thread.

A truncated, altered or wrongly signed file is refused and logged; the previous one is used then.
"""

import contextlib
import errno
import fcntl
import hmac
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import orjson
import structlog

LOCK_SECONDS = 2.0
FORMAT = b"1"
SKEW_SECONDS = 2.0  # Two clocks that agree may differ by this much.

_Identity = tuple[int, int, int, int]

log = structlog.get_logger(__name__)


T = TypeVar("T")
R = TypeVar("R")


_utc_now = partial(datetime.now, UTC)


class InvalidFile(Exception):
    """A file that can't be accepted; the message is the reason, for the log."""


@dataclass(frozen=True)
class FileFormat(Generic[T]):
    """The file names and functions for one kind of saved content.

    `names` are the current, the previous, the draft and the lock file. `taken_at` returns the time
    at which the database confirmed the content.
    """

    names: tuple[str, str, str, str]
    max_bytes: int
    sign: Callable[[T, bytes], bytes]
    verify: Callable[[bytes, bytes], T]
    merge: Callable[[T, T], T]
    taken_at: Callable[[T], datetime]


class SignedFiles(Generic[T]):
    """A signed file in `folder`, which several processes of a host may share.

    Content signed with one of the `older_keys` is accepted, and signed with `key` when it is saved.
    """

    def __init__(
        self,
        folder: Path,
        key: bytes,
        form: FileFormat[T],
        *,
        largest_bytes: int | None = None,
        clock: Callable[[], datetime] = _utc_now,
        older_keys: Sequence[bytes] = (),
    ) -> None:
        self._folder = folder
        self._format = form
        self._current, self._previous, self._draft, self._lock = (
            folder / name for name in form.names
        )
        self._key = key
        self._older_keys = older_keys
        self._needs_signing = False
        self._largest_bytes = largest_bytes or form.max_bytes
        self._clock = clock
        self._written: tuple[_Identity, T] | None = None

    def save(self, saved: T) -> None:
        """Write `saved` atomically, merged with the content on disk by `FileFormat.merge`.

        Raises OSError, with the old file in place, if the write fails or the content is too large.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        self._folder.chmod(0o700)
        with self._hold_lock():
            present = self._present()
            content = saved if present is None else self._format.merge(present, saved)
            if content == present and not self._needs_signing:
                return
            self._write(self._draft, self._format.sign(content, self._key), sync=True)
            if present is not None:  # Keep a valid previous file.
                self._current.replace(self._previous)
            self._draft.replace(self._current)
            self._sync_folder()
            self._written = _file_identity(self._current), content
            self._needs_signing = False

    def load(self) -> T | None:
        """Return the content of the current file if valid, else of the previous one, else None."""
        for path in (self._current, self._previous):
            saved = self._try_verify(path, self._verify)
            if saved is not None:
                self._compare_clocks(path, saved)
                return saved
        return None

    def _present(self) -> T | None:
        """Return the current file's content, cached until another process writes the file."""
        if self._written is not None:
            with contextlib.suppress(FileNotFoundError):
                if _file_identity(self._current) == self._written[0]:
                    return self._written[1]
        return self._try_verify(self._current, self._verify)

    def _try_verify(self, path: Path, verify: Callable[[bytes], R]) -> R | None:
        """Return the verified content of a file; None if it is missing, or invalid and logged."""
        try:
            return verify(self._content(path))
        except FileNotFoundError:
            return None
        except InvalidFile as error:
            why = str(error)
        except OSError as error:
            link = error.errno == errno.ELOOP
            why = "it is a symbolic link" if link else str(error.strerror or error)
        log.error("dataplane.copy_refused", file=str(path), why=why)
        return None

    def _verify(self, content: bytes) -> T:
        self._needs_signing = False
        try:
            return self._format.verify(content, self._key)
        except InvalidFile:
            for key in self._older_keys:
                with contextlib.suppress(InvalidFile):
                    saved = self._format.verify(content, key)
                    self._needs_signing = True
                    return saved
            raise

    def _content(self, path: Path) -> bytes:
        """Return the bytes of a regular file that no other user can access; never block on open."""
        with open(path, "rb", opener=_open_plainly) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise InvalidFile("it is not a plain file")
            if stat.S_IMODE(status.st_mode) & 0o077:
                raise InvalidFile("others may read or write it; chmod 600 it")
            content = file.read(self._largest_bytes + 1)
        if len(content) > self._largest_bytes:
            raise InvalidFile(f"it is larger than {self._largest_bytes} bytes")
        return content

    def _write(self, draft: Path, content: bytes, *, sync: bool) -> None:
        """Write `content` to a new file, with fsync if `sync`; raise OSError."""
        if len(content) > self._largest_bytes:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(self._current))
        draft.unlink(missing_ok=True)  # Left by a killed process.
        try:
            with open(draft, "xb", buffering=0, opener=_open_privately) as file:
                view = memoryview(content)
                while view:
                    view = view[file.write(view) :]
                if sync:
                    os.fsync(file.fileno())
        except OSError:
            draft.unlink(missing_ok=True)
            raise

    def _sync_folder(self) -> None:
        descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def _hold_lock(self) -> Iterator[None]:
        """Hold the writers' lock; raise TimeoutError after `LOCK_SECONDS`."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._lock, flags, 0o600)
        try:
            ends = time.monotonic() + LOCK_SECONDS
            while not _try_lock(descriptor):
                if time.monotonic() > ends:
                    raise TimeoutError(errno.ETIMEDOUT, "another process keeps the lock")
                time.sleep(0.02)
            yield
        finally:
            os.close(descriptor)  # Releases the lock.

    def _compare_clocks(self, path: Path, saved: T) -> None:
        ahead_seconds = (self._format.taken_at(saved) - self._clock()).total_seconds()
        if ahead_seconds > SKEW_SECONDS:
            ahead = round(ahead_seconds, 1)
            log.warning("dataplane.copy_from_the_future", file=str(path), ahead_seconds=ahead)


def _file_identity(path: Path) -> _Identity:
    """Return a value that changes with the file's content or mode."""
    status = path.lstat()
    return status.st_dev, status.st_ino, status.st_size, status.st_ctime_ns


def _open_plainly(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _open_privately(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def sign_file(kind: bytes, rest: bytes, key: bytes) -> bytes:
    return b"%b %b %b\n%b" % (kind, FORMAT, _hex_hmac(rest, key), rest)


def verify_file(
    kind: bytes,
    text: bytes,
    key: bytes,
    parse: Callable[[Any], T],
    serialize: Callable[[T], bytes],
) -> T:
    """Return the document of a signed file; raise :class:`InvalidFile` if it is not valid.

    `parse` converts the JSON document to an object, and `serialize` converts it back. Nothing is
    parsed before the signature is verified.
    """
    first, _, rest = text.partition(b"\n")
    found_kind, version, signature = (*first.split(b" ", 2), b"", b"")[:3]
    if found_kind != kind:
        raise InvalidFile("it is not a copy of the data plane")
    if version != FORMAT:
        raise InvalidFile(f"its format is not {FORMAT.decode()}")
    if not hmac.compare_digest(signature, _hex_hmac(rest, key)):
        raise InvalidFile("its signature is wrong: it is damaged, or another key signed it")
    try:
        saved = parse(orjson.loads(rest))
        is_canonical = serialize(saved) == rest
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise InvalidFile(f"its schema is another one ({type(error).__name__}: {error})") from error
    if not is_canonical:
        raise InvalidFile("its schema is another one (it would be serialize differently)")
    return saved


def check_count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(f"{value!r} is not a count")
    return value


def check_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def parse_time(value: Any) -> datetime:
    return datetime.fromisoformat(check_text(value)).astimezone(UTC)


def _hex_hmac(rest: bytes, key: bytes) -> bytes:
    return hmac.digest(key, rest, "sha256").hex().encode()
