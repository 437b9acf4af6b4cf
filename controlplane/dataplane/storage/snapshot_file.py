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
import hmac
import os
from dataclasses import replace
from pathlib import Path

from switches.snapshot import SnapshotVersion

from .saved_policies import POLICIES, SavedPolicies
from .saved_snapshot import SNAPSHOT, STATE, SavedSnapshot, SavedState
from .signed_file import SignedFiles

_LATEST = "latest-"
_DRAFT = "draft-latest-"


def signing_key(secret_key: str) -> bytes:
    """Return the key that signs files, derived from the installation's secret."""
    return hmac.digest(secret_key.encode(), b"switchgear/dataplane/disk/1", "sha256")


class PoliciesDisk(SignedFiles[SavedPolicies]):
    names = ("policies", "policies-previous", "policies-draft", "policies-lock")
    max_bytes = 256 * 1024 * 1024
    document = POLICIES


class SnapshotDisk(SignedFiles[SavedState]):
    """The files in `folder`: the saved state, and the latest served snapshot."""

    names = ("current", "previous", "draft", "lock")
    max_bytes = 64 * 1024 * 1024
    document = STATE

    def save_latest(self, publication: SnapshotVersion, body: bytes) -> None:
        """Write the rendered snapshot `body` without fsync, and remove older ones.

        The version is part of the file name, so processes that share the folder need no lock.
        Raises OSError.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self._folder / f"{_DRAFT}{os.getpid()}"
        self._write(draft, SNAPSHOT.sign_bytes(body, self._key), sync=False)
        draft.replace(self._folder / f"{_LATEST}{publication.mark}")
        for epoch, version, path in self._latest():
            if epoch != str(publication.epoch) or version < publication.version:
                path.unlink(missing_ok=True)

    def load(self) -> SavedState | None:
        """Return what :meth:`read` returns, and remove drafts of killed processes."""
        saved = self.read()
        for draft in () if saved is None else self._folder.glob(f"{_DRAFT}*"):
            with contextlib.suppress(OSError):
                draft.unlink()
        return saved

    def read(self) -> SavedState | None:
        """Return the saved state, updated by newer snapshot files; None without a valid state."""
        saved = super().load()
        if saved is None:
            return None
        for epoch, version, path in self._latest():
            if epoch == str(saved.publication.epoch) and version <= saved.publication.version:
                continue
            if found := self._try_verify(path, SNAPSHOT):
                saved = apply_latest(saved, found[0])
        return saved

    def _latest(self) -> list[tuple[str, int, Path]]:
        """Return (epoch, version, path) of each snapshot file, the highest version first."""
        named = [
            (*path.name.removeprefix(_LATEST).rpartition(".")[::2], path)
            for path in self._folder.glob(f"{_LATEST}*")
        ]
        saved = [(epoch, int(text), path) for epoch, text, path in named if text.isdecimal()]
        return sorted(saved, key=lambda each: each[1], reverse=True)


def apply_latest(copy: SavedState, latest: SavedSnapshot) -> SavedState:
    """Return the saved state `copy` with the snapshot `latest`, if this is newer, else unchanged.

    A snapshot of another epoch is newer if it was published later. In this case revision and
    registrations are reset, because the saved ones belong to the old epoch, and orders that it had
    closed are settled or open again, as in :meth:`OrderSet.begin_epoch`. The closed orders of
    `latest` are not used: an id alone doesn't tell which of two orders with that id was closed.
    """
    ours, theirs = copy.publication, latest.publication
    served = replace(copy, publication=theirs, entries=latest.entries)
    if theirs.epoch == ours.epoch:
        return served if theirs.version > ours.version else copy
    if theirs.epoch in copy.left_epochs or theirs.published_at <= ours.published_at:
        return copy
    engaged = {entry.id for entry in copy.entries if entry.state == "engaged"}
    released = {key for key, order in copy.closed.items() if order.subject not in engaged}
    return replace(
        served,
        closed={},
        settled=copy.settled | released,
        revision=0,
        registrations=-1,
        left_epochs=copy.left_epochs | {ours.epoch},
    )
