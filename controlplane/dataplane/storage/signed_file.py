"""A signed file with its previous version and a lock between processes. Blocking: use a thread.

A truncated, altered or wrongly signed file is refused and logged; the previous one is used then.
"""

import contextlib
import errno
import hmac
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Generic, Self, TypeVar
from uuid import UUID

import orjson
import structlog

from controlplane.core.private_files import (
    InvalidFile,
    create_file,
    file_identity,
    hold_lock,
    read_file,
    sync_folder,
)

FORMAT = b"1"
SKEW_SECONDS = 2.0  # Two clocks that agree may differ by this much.

log = structlog.get_logger(__name__)

D = TypeVar("D")
_utc_now = partial(datetime.now, UTC)


@dataclass(frozen=True)
class SignedDocument(Generic[D]):
    """The format of one kind of signed file: conversion of its content to and from bytes.

    `parse` converts a JSON document to the content, and `serialize` converts the content back.
    """

    kind: bytes
    parse: Callable[[Any], D]
    serialize: Callable[[D], bytes]

    def sign(self, content: D, key: bytes) -> bytes:
        return self.sign_bytes(self.serialize(content), key)

    def sign_bytes(self, serialized: bytes, key: bytes) -> bytes:
        return b"%b %b %b\n%b" % (self.kind, FORMAT, _hex_hmac(serialized, key), serialized)

    def verify(self, text: bytes, key: bytes) -> D:
        """Return the content of a signed file; raise :class:`InvalidFile` if it is not valid.

        Nothing is parsed before the signature is verified.
        """
        first, _, rest = text.partition(b"\n")
        found_kind, version, signature = (*first.split(b" ", 2), b"", b"")[:3]
        if found_kind != self.kind:
            raise InvalidFile("it is not a copy of the data plane")
        if version != FORMAT:
            raise InvalidFile(f"its format is not {FORMAT.decode()}")
        if not hmac.compare_digest(signature, _hex_hmac(rest, key)):
            raise InvalidFile(
                "invalid signature: the file is damaged, or was signed with another key"
            )
        try:
            saved = self.parse(orjson.loads(rest))
            is_canonical = self.serialize(saved) == rest
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            reason = f"it has another schema ({type(error).__name__}: {error})"
            raise InvalidFile(reason) from error
        if not is_canonical:
            raise InvalidFile("it has another schema (it would be serialized differently)")
        return saved


@dataclass(frozen=True, kw_only=True)
class SavedContent(ABC):
    """Content of a signed file, which the database confirmed at `confirmed_at`.

    `left_epochs` are earlier epochs of the database, whose content is outdated.
    """

    left_epochs: frozenset[UUID]
    confirmed_at: datetime

    @property
    @abstractmethod
    def epoch(self) -> UUID: ...

    @abstractmethod
    def merge_parts(self, news: Self) -> Self:
        """Return the newer of each part of this content and of `news`, which has the same epoch."""


T = TypeVar("T", bound=SavedContent)


class SignedFiles(Generic[T]):
    """A signed file and its previous version in `folder`, which processes of a host may share.

    `names` are the names of the current, the previous, the draft and the lock file. Content signed
    with one of the `older_keys` is accepted, and signed with `key` when it is saved.
    """

    names: tuple[str, str, str, str]
    max_bytes: int
    document: SignedDocument[T]

    def __init__(
        self,
        folder: Path,
        key: bytes,
        *,
        largest_bytes: int | None = None,
        clock: Callable[[], datetime] = _utc_now,
        older_keys: Sequence[bytes] = (),
    ) -> None:
        self._folder = folder
        self._current, self._previous, self._draft, self._lock = map(folder.joinpath, self.names)
        self._key = key
        self._older_keys = older_keys
        self._needs_signing = False
        self._largest_bytes = largest_bytes or self.max_bytes
        self._clock = clock
        self._written: tuple[tuple[int, ...], T] | None = None

    def save(self, saved: T) -> None:
        """Write `saved` atomically, merged with the content on disk.

        Raises OSError, with the old file in place, if the write fails or the content is too large.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        self._folder.chmod(0o700)
        with hold_lock(self._lock):
            present = self._read_present()
            content = saved if present is None else self.merge(present, saved)
            if content == present and not self._needs_signing:
                return
            self._write(self._draft, self.document.sign(content, self._key), sync=True)
            if present is not None:  # Keep a valid previous file.
                self._current.replace(self._previous)
            self._draft.replace(self._current)
            sync_folder(self._folder)
            self._written = file_identity(self._current), content
            self._needs_signing = False

    def load(self) -> T | None:
        """Return the content of the current file if valid, else of the previous one, else None."""
        for path in (self._current, self._previous):
            if found := self._try_verify(path, self.document):
                saved, self._needs_signing = found
                ahead_seconds = (saved.confirmed_at - self._clock()).total_seconds()
                if ahead_seconds > SKEW_SECONDS:
                    details = {"file": str(path), "ahead_seconds": round(ahead_seconds, 1)}
                    log.warning("dataplane.copy_postdated", **details)
                return saved
        return None

    @classmethod
    def merge(cls, present: T, news: T) -> T:
        """Return the content to save when `present` is on disk and `news` is to be saved.

        Another process may have written `present`. Within an epoch, the newer of each part is kept,
        so that no older version or revoked token returns. Of two epochs, one that is in the other
        content's `left_epochs` is discarded; otherwise the content that was confirmed later is
        kept.
        """
        left = (present.left_epochs | news.left_epochs) - {news.epoch}
        if present.epoch == news.epoch:
            return replace(present.merge_parts(news), left_epochs=left)
        if news.epoch in present.left_epochs:
            return present
        if present.epoch in news.left_epochs or news.confirmed_at > present.confirmed_at:
            return replace(news, left_epochs=left)
        return present

    def _read_present(self) -> T | None:
        """Return the current file's content, cached until another process writes the file."""
        if self._written is not None:
            with contextlib.suppress(FileNotFoundError):
                if file_identity(self._current) == self._written[0]:
                    return self._written[1]
        if found := self._try_verify(self._current, self.document):
            present, self._needs_signing = found
            return present
        return None

    def _try_verify(self, path: Path, document: SignedDocument[D]) -> tuple[D, bool] | None:
        """Return a file's content, and True if it is signed with an older key.

        Return None if the file is missing or invalid; log why it is invalid.
        """
        try:
            content = read_file(path, self._largest_bytes)
            for key in self._older_keys:
                with contextlib.suppress(InvalidFile):
                    return document.verify(content, key), True
            return document.verify(content, self._key), False
        except FileNotFoundError:
            return None
        except InvalidFile as error:
            why = str(error)
        except OSError as error:
            is_link = error.errno == errno.ELOOP
            why = "it is a symbolic link" if is_link else str(error.strerror or error)
        log.error("dataplane.copy_refused", file=str(path), why=why)
        return None

    def _write(self, draft: Path, content: bytes, *, sync: bool) -> None:
        if len(content) > self._largest_bytes:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(self._current))
        create_file(draft, content, sync=sync)


def _hex_hmac(rest: bytes, key: bytes) -> bytes:
    return hmac.digest(key, rest, "sha256").hex().encode()
