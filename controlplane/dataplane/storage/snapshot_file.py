"""The folder of signed files from which a restarted data plane serves without a database.

`current` and `previous` hold the whole state (:mod:`.saved_snapshot`); `policies` and
`policies-previous` are separate, so that their size and errors don't affect switches.

A signature can't prove age: anyone with write access to the folder can restore an older signed
file. A data plane that starts from it without a database serves outdated switches and accepts
tokens revoked since. This risk is limited: running processes never read the folder, the first
database poll replaces the copy, tokens still expire, `Switchgear-Age` counts from the signed time,
and clients that have seen a newer version refuse the older one. Still, only the data plane should
have access to the folder.
"""

import contextlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from switches.snapshot import SnapshotVersion

from . import saved_policies, saved_snapshot
from .saved_policies import SavedPolicies
from .saved_snapshot import SavedState, signing_key
from .signed_file import FileFormat, InvalidFile, SignedFiles

__all__ = ["PoliciesDisk", "SavedPolicies", "SavedState", "SnapshotDisk", "signing_key"]

_LATEST = "latest-"
_DRAFT = "draft-latest-"

COPY = FileFormat[SavedState](
    names=("current", "previous", "draft", "lock"),
    max_bytes=64 * 1024 * 1024,
    sign=saved_snapshot.sign,
    verify=saved_snapshot.verify,
    merge=saved_snapshot.merge_saved,
    taken_at=lambda saved: saved.confirmed_at,
)
POLICIES = FileFormat[SavedPolicies](
    names=("policies", "policies-previous", "policies-draft", "policies-lock"),
    max_bytes=256 * 1024 * 1024,
    sign=saved_policies.sign,
    verify=saved_policies.verify,
    merge=saved_policies.merge_saved,
    taken_at=lambda saved: saved.confirmed_at,
)


class SnapshotDisk(SignedFiles[SavedState]):
    """The saved state in `folder`, and the latest served snapshot."""

    def __init__(self, folder: Path, key: bytes, **options: Any) -> None:
        super().__init__(folder, key, COPY, **options)
        self._latest_draft = folder / f"{_DRAFT}{os.getpid()}"

    def save_latest(self, publication: SnapshotVersion, body: bytes) -> None:
        """Write the rendered snapshot `body` without fsync, and remove older ones.

        The version is part of the file name, so processes that share the folder need no lock.
        Raises OSError.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._write(self._latest_draft, saved_snapshot.sign_snapshot(body, self._key), sync=False)
        self._latest_draft.replace(self._folder / f"{_LATEST}{publication.mark}")
        for epoch, version, path in self._latest():
            if epoch != str(publication.epoch) or version < publication.version:
                path.unlink(missing_ok=True)

    def load(self) -> SavedState | None:
        """Return the saved state, updated by newer snapshot files; None without a valid state."""
        saved = super().load()
        if saved is None:
            return None
        for draft in self._folder.glob(f"{_DRAFT}*"):  # Left by killed processes.
            with contextlib.suppress(OSError):
                draft.unlink()
        for epoch, version, path in self._latest():
            if epoch == str(saved.publication.epoch) and version <= saved.publication.version:
                continue
            latest = self._try_verify(path, self._verify_snapshot)
            if latest is not None:
                saved = _apply_latest(saved, latest)
        return saved

    def _latest(self) -> list[tuple[str, int, Path]]:
        """Return (epoch, version, path) of each snapshot file, the highest version first."""
        named = [
            (*path.name.removeprefix(_LATEST).rpartition(".")[::2], path)
            for path in self._folder.glob(f"{_LATEST}*")
        ]
        saved = [(epoch, int(text), path) for epoch, text, path in named if text.isdecimal()]
        return sorted(saved, key=lambda each: each[1], reverse=True)

    def _verify_snapshot(self, text: bytes) -> saved_snapshot.SavedSnapshot:
        for key in self._older_keys:
            with contextlib.suppress(InvalidFile):
                return saved_snapshot.verify_snapshot(text, key)
        return saved_snapshot.verify_snapshot(text, self._key)


def _apply_latest(copy: SavedState, latest: saved_snapshot.SavedSnapshot) -> SavedState:
    """Return `copy` with the snapshot `latest`, or unchanged if `latest` is not newer.

    A snapshot of another epoch is newer if it was published later. In this case revision and
    registrations are reset, because the saved ones belong to the old epoch.
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

    def __init__(self, folder: Path, key: bytes, **options: Any) -> None:
        super().__init__(folder, key, POLICIES, **options)
