"""The copy on disk: what a data plane restarted without PostgreSQL and Redis answers from.

Two files, `current` and the one before, `previous`, each signed with a key that is kept elsewhere
(see :mod:`controlplane.dataplane.saved`); and two beside them for policies and what is away, so
that their size and what is wrong with them cost the switches nothing. How they are written and
read: :mod:`controlplane.dataplane.files`.

What a signature can't tell is age: whoever may write to the folder can put an older file back that
was once signed here. A data plane that then starts without its database would answer from it: with
switches as they were then, and with tokens that have been revoked since. That is bounded. A running
process never reads the folder; the first answer of the database ends it; a token's own expiry still
counts; `Switchgear-Age` is counted from the signed time and tells; and a client that has seen a
newer version of the epoch, or left the epoch, does not take the older one. So the folder wants to
belong to the data plane alone.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from controlplane.dataplane import saved, saved_policies
from controlplane.dataplane.files import Files, Form
from controlplane.dataplane.saved import Saved, signing_key
from controlplane.dataplane.saved_policies import SavedPolicies

__all__ = ["Disk", "PoliciesDisk", "Saved", "SavedPolicies", "signing_key"]

LARGEST_BYTES = 64 * 1024 * 1024
LARGEST_POLICIES_BYTES = 256 * 1024 * 1024

COPY = Form[Saved](
    names=("current", "previous", "draft", "lock"),
    sign=saved.sign,
    verify=saved.verify,
    merged=saved.merged,
    taken_at=lambda kept: kept.confirmed_at,
)
POLICIES = Form[SavedPolicies](
    names=("policies", "policies-previous", "policies-draft", "policies-lock"),
    sign=saved_policies.sign,
    verify=saved_policies.verify,
    merged=saved_policies.merged,
    taken_at=lambda kept: kept.told_at,
)


def _now() -> datetime:
    return datetime.now(UTC)


class Disk(Files[Saved]):
    """The copy in `folder`."""

    def __init__(
        self,
        folder: Path,
        key: bytes,
        largest_bytes: int = LARGEST_BYTES,
        clock: Callable[[], datetime] = _now,
        older_keys: Sequence[bytes] = (),
    ) -> None:
        super().__init__(folder, key, COPY, largest_bytes, clock, older_keys)


class PoliciesDisk(Files[SavedPolicies]):
    """The policies beside it."""

    def __init__(
        self,
        folder: Path,
        key: bytes,
        largest_bytes: int = LARGEST_POLICIES_BYTES,
        clock: Callable[[], datetime] = _now,
        older_keys: Sequence[bytes] = (),
    ) -> None:
        super().__init__(folder, key, POLICIES, largest_bytes, clock, older_keys)
