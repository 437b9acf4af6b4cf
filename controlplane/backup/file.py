"""The backup file: a tar archive of the dump and then its manifest.

The dump's size and hash are known only at its end, so its header is filled in afterwards.
"""

import contextlib
import fcntl
import hashlib
import os
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO

from controlplane.core.errors import Conflict, InvalidInput

from .manifest import MAX_BYTES, Manifest, loads
from .pg_programs import CHUNK

DUMP, MANIFEST = "database.dump", "manifest.json"
_BLOCK = tarfile.BLOCKSIZE


def write(path: Path, fill: Callable[[Callable[[bytes], None]], Manifest]) -> Manifest:
    """Write the backup file atomically.

    `fill(write_piece)` has to write the dump piece by piece, and to return the manifest.
    Raises :class:`Conflict` if the file exists or another process is writing it, and OSError if
    writing fails. The leftovers of a killed run are overwritten.
    """
    if path.exists():
        raise Conflict(f"{path} already exists. Use another name, or move the existing file.")
    draft = path.with_name(f"{path.name}.part")
    with _lock_draft(draft) as file:
        manifest = _write_archive(file, fill)
        file.flush()
        os.fsync(file.fileno())
        os.link(draft, path)  # Not a rename, which would replace a file created meanwhile.
        draft.unlink()
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return manifest


def read_manifest(path: Path) -> Manifest:
    """Return a backup's manifest; raise :class:`InvalidInput` unless the dump matches it."""
    with open_backup(path) as (manifest, dump):
        digest, size = hashlib.sha256(), 0
        while piece := dump.read(CHUNK):
            digest.update(piece)
            size += len(piece)
    if (size, digest.hexdigest()) != (manifest.size, manifest.sha256):
        raise InvalidInput({"FILE": ["its dump is incomplete or was changed."]})
    return manifest


@contextmanager
def open_backup(path: Path) -> Iterator[tuple[Manifest, IO[bytes]]]:
    """Context manager: manifest and dump of a backup; raise :class:`InvalidInput` if damaged."""
    try:
        with tarfile.open(path, "r:") as archive:
            inside = {member.name: member for member in archive.getmembers()}
            if set(inside) != {DUMP, MANIFEST} or inside[MANIFEST].size > MAX_BYTES:
                raise InvalidInput({"FILE": ["it is not a backup, or is incomplete."]})
            manifest, dump = (
                archive.extractfile(inside[MANIFEST]),
                archive.extractfile(inside[DUMP]),
            )
            if manifest is None or dump is None:
                raise InvalidInput({"FILE": ["it is not a backup."]})
            yield loads(manifest.read()), dump
    except (tarfile.TarError, EOFError) as error:
        raise InvalidInput({"FILE": [f"it is not a backup, or is incomplete: {error}."]}) from error
    except OSError as error:
        raise InvalidInput({"FILE": [f"it can't be read: {error.strerror or error}."]}) from error


@contextmanager
def _lock_draft(draft: Path) -> Iterator[IO[bytes]]:
    """Context manager: the draft file, emptied and locked by `flock`; removed on an error."""
    descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Conflict(f"Another backup is being written to {draft}.") from error
        os.fchmod(file.fileno(), 0o600)
        file.truncate(0)
        try:
            yield file
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                draft.unlink()
            raise


def _write_archive(
    file: IO[bytes], fill: Callable[[Callable[[bytes], None]], Manifest]
) -> Manifest:
    digest = hashlib.sha256()

    def take(piece: bytes) -> None:
        digest.update(piece)
        file.write(piece)

    file.write(b"\0" * _BLOCK)
    unfinished = fill(take)
    size = file.tell() - _BLOCK
    file.write(b"\0" * (-size % _BLOCK))
    manifest = replace(unfinished, size=size, sha256=digest.hexdigest())
    content = manifest.dumps()
    file.write(_header(MANIFEST, len(content)) + content)
    file.write(b"\0" * (-len(content) % _BLOCK + 2 * _BLOCK))
    file.seek(0)
    file.write(_header(DUMP, size))
    return manifest


def _header(name: str, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o600
    return info.tobuf(tarfile.GNU_FORMAT)
