"""The file of a backup: a tar of the dump, followed by the manifest.

The dump comes first because its hash is known only at its end; its header is filled in then.
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

from controlplane.core.backup.manifest import Manifest
from controlplane.core.errors import Conflict, InvalidInput

from . import manifest, pg_programs

DUMP, SAID = "database.dump", "manifest.json"
_BLOCK = tarfile.BLOCKSIZE


def write(path: Path, fill: Callable[[Callable[[bytes], None]], Manifest]) -> Manifest:
    """Write the file atomically: `fill` gets a function that takes the dump in pieces.

    Raises :class:`Conflict` if the file exists or is being written, and OSError. The leftovers of a
    killed run are overwritten.
    """
    if path.exists():
        raise Conflict(f"{path} exists. Give the backup another name, or move that one away.")
    draft = path.with_name(f"{path.name}.part")
    with _locked(draft) as file:
        said = _fill(file, fill)
        file.flush()
        os.fsync(file.fileno())
        os.link(draft, path)  # Not a rename, which would replace a file created meanwhile.
        draft.unlink()
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return said


def read_manifest(path: Path) -> Manifest:
    """Return a backup's manifest after checking the dump's digest. Raises :class:`InvalidInput`."""
    with opened(path) as (said, dump):
        digest, size = hashlib.sha256(), 0
        while piece := dump.read(pg_programs.CHUNK):
            digest.update(piece)
            size += len(piece)
    if (size, digest.hexdigest()) != (said.size, said.sha256):
        raise InvalidInput({"FILE": ["its dump is not what was written: it is cut or changed."]})
    return said


@contextmanager
def opened(path: Path) -> Iterator[tuple[Manifest, IO[bytes]]]:
    """Open a backup's manifest and dump. Raises :class:`InvalidInput`."""
    try:
        with tarfile.open(path, "r:") as archive:
            inside = {member.name: member for member in archive.getmembers()}
            if set(inside) != {DUMP, SAID} or inside[SAID].size > manifest.MAX_BYTES:
                raise InvalidInput({"FILE": ["it is no backup, or it is cut."]})
            said, dump = archive.extractfile(inside[SAID]), archive.extractfile(inside[DUMP])
            if said is None or dump is None:
                raise InvalidInput({"FILE": ["it is no backup."]})
            yield manifest.loads(said.read()), dump
    except (tarfile.TarError, EOFError) as error:
        raise InvalidInput({"FILE": [f"it is no backup, or it is cut: {error}."]}) from error
    except OSError as error:
        raise InvalidInput({"FILE": [f"it can't be read: {error.strerror or error}."]}) from error


@contextmanager
def _locked(draft: Path) -> Iterator[IO[bytes]]:
    """The draft, empty, for this process alone; a lock of the kernel ends with its process."""
    descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Conflict(f"Another backup is just being written to {draft}.") from error
        os.fchmod(file.fileno(), 0o600)
        file.truncate(0)
        try:
            yield file
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                draft.unlink()
            raise


def _fill(file: IO[bytes], fill: Callable[[Callable[[bytes], None]], Manifest]) -> Manifest:
    digest = hashlib.sha256()

    def take(piece: bytes) -> None:
        digest.update(piece)
        file.write(piece)

    file.write(b"\0" * _BLOCK)
    found = fill(take)
    size = file.tell() - _BLOCK
    file.write(b"\0" * (-size % _BLOCK))
    said = replace(found, size=size, sha256=digest.hexdigest())
    content = said.dumps()
    file.write(_header(SAID, len(content)) + content)
    file.write(b"\0" * (-len(content) % _BLOCK + 2 * _BLOCK))
    file.seek(0)
    file.write(_header(DUMP, size))
    return said


def _header(name: str, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o600
    return info.tobuf(tarfile.GNU_FORMAT)
