"""The copy on disk, from which a restarted data plane answers without PostgreSQL and Redis.

Two files, `current` and `previous`, each signed with a key that is stored elsewhere (see
:mod:`.saved_snapshot`), and two beside them for policies and degradation causes, so that their size
and errors don't affect the switches. Reading and writing: :mod:`.signed_file`.

A signature can't prove age: anyone who may write to the folder can restore an older signed file. A
data plane that then starts without its database would serve the switches as they were then, and
accept tokens that have been revoked since. The risk is bounded: a running process never reads the
folder; the first answer of the database replaces the copy; a token's own expiry still applies;
`Switchgear-Age` is counted from the signed time; and a client that has seen a newer version of the
epoch, or left the epoch, refuses the older one. So only the data plane should have access to the
folder.
"""

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from switches.snapshot import SnapshotVersion

from . import saved_policies, saved_snapshot
from .saved_policies import SavedPolicies
from .saved_snapshot import SavedState, signing_key
from .signature import InvalidFile
from .signed_file import FileFormat, SignedFiles

__all__ = ["PoliciesDisk", "SavedPolicies", "SavedState", "SnapshotDisk", "signing_key"]

_LATEST = "latest-"
_DRAFT = "draft-latest-"
MAX_BYTES = 64 * 1024 * 1024
MAX_POLICIES_BYTES = 256 * 1024 * 1024

COPY = FileFormat[SavedState](
    names=("current", "previous", "draft", "lock"),
    sign=saved_snapshot.sign,
    verify=saved_snapshot.verify,
    merged=saved_snapshot.merged,
    taken_at=lambda kept: kept.confirmed_at,
)
POLICIES = FileFormat[SavedPolicies](
    names=("policies", "policies-previous", "policies-draft", "policies-lock"),
    sign=saved_policies.sign,
    verify=saved_policies.verify,
    merged=saved_policies.merged,
    taken_at=lambda kept: kept.told_at,
)


def _now() -> datetime:
    return datetime.now(UTC)


class SnapshotDisk(SignedFiles[SavedState]):
    """The saved copy in `folder`."""

    def __init__(
        self,
        folder: Path,
        key: bytes,
        largest_bytes: int = MAX_BYTES,
        clock: Callable[[], datetime] = _now,
        older_keys: Sequence[bytes] = (),
    ) -> None:
        super().__init__(folder, key, COPY, largest_bytes, clock, older_keys)
        self._latest_draft = folder / f"{_DRAFT}{os.getpid()}"

    def save_latest(self, publication: SnapshotVersion, body: bytes) -> None:
        """Write the rendered snapshot `body` without fsync, and remove older ones.

        The version is in the file name, so processes that share the folder need no lock: none
        replaces a newer version with an older one. Raises OSError.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._write(self._latest_draft, saved_snapshot.sign_snapshot(body, self._key), sync=False)
        self._latest_draft.replace(self._folder / f"{_LATEST}{publication.mark}")
        for epoch, version, path in self._latest():
            if epoch != str(publication.epoch) or version < publication.version:
                path.unlink(missing_ok=True)

    def load(self) -> SavedState | None:
        """Return the copy with the latest snapshot that follows it; None without a valid copy."""
        found = super().load()
        if found is None:
            return None
        for draft in self._folder.glob(f"{_DRAFT}*"):  # Left by killed processes.
            with contextlib.suppress(OSError):
                draft.unlink()
        for epoch, version, path in self._latest():
            if epoch == str(found.publication.epoch) and version <= found.publication.version:
                continue
            latest = self._accepted(path, self._verified_snapshot)
            if latest is not None:
                found = _follow(found, latest)
        return found

    def _latest(self) -> list[tuple[str, int, Path]]:
        """Return epoch, version and path of each latest snapshot, the highest version first."""
        named = [
            (*path.name.removeprefix(_LATEST).rpartition(".")[::2], path)
            for path in self._folder.glob(f"{_LATEST}*")
        ]
        found = [(epoch, int(text), path) for epoch, text, path in named if text.isdecimal()]
        return sorted(found, key=lambda each: each[1], reverse=True)

    def _verified_snapshot(self, text: bytes) -> saved_snapshot.SavedSnapshot:
        for key in self._older_keys:
            with contextlib.suppress(InvalidFile):
                return saved_snapshot.verify_snapshot(text, key)
        return saved_snapshot.verify_snapshot(text, self._key)


def _follow(copy: SavedState, latest: saved_snapshot.SavedSnapshot) -> SavedState:
    """Return `copy` with `latest` as its snapshot, or as it is if `latest` does not follow it.

    One of a new epoch was served if the process was killed, or lost the database, before the
    numbers of that epoch were read whole.
    """
    ours, theirs = copy.publication, latest.publication
    served = replace(copy, publication=theirs, entries=latest.entries)
    if theirs.epoch == ours.epoch:
        return served if theirs.version > ours.version else copy
    if theirs.epoch in copy.left_epochs or theirs.published_at <= ours.published_at:
        return copy
    left = copy.left_epochs | {ours.epoch}
    return replace(served, revision=0, registrations=-1, left_epochs=left)


class PoliciesDisk(SignedFiles[SavedPolicies]):
    """The saved policies in `folder`."""

    def __init__(
        self,
        folder: Path,
        key: bytes,
        largest_bytes: int = MAX_POLICIES_BYTES,
        clock: Callable[[], datetime] = _now,
        older_keys: Sequence[bytes] = (),
    ) -> None:
        super().__init__(folder, key, POLICIES, largest_bytes, clock, older_keys)
