"""What this process knows: the copy it serves, the tokens, and how fresh both are.

Written by the refresher alone, on the event loop; read by requests, and by Django's threads through
:class:`Status`. Each attribute is replaced as a whole, so a reader never sees half a change.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from controlplane.dataplane.credentials import TokenTable
from controlplane.dataplane.served_copy import Copy
from switches.snapshot import Publication


class Head(NamedTuple):
    """The one row polled each second: the present version, and the credentials' revision."""

    publication: Publication
    revision: int


@dataclass(frozen=True)
class Status:
    """What the rest of the process may know; version, epoch and age are None before a snapshot."""

    version: int | None
    epoch: UUID | None
    age_seconds: float | None
    database_reachable: bool


class State:
    """The data plane's memory. `monotonic` is a clock in seconds that is never set back."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.copy: Copy | None = None
        self.tokens: TokenTable | None = None
        self.used_tokens: set[int] = set()
        self.database_reachable = False
        self._monotonic = monotonic
        self._revision = 0
        self._confirmed_at = 0.0
        self._left_epochs: set[UUID] = set()

    def age_seconds(self) -> float:
        """Seconds since the served copy was last known to be the database's."""
        return self._monotonic() - self._confirmed_at

    def status(self) -> Status:
        copy = self.copy
        if copy is None:
            return Status(None, None, None, self.database_reachable)
        publication = copy.publication
        return Status(
            publication.version, publication.epoch, self.age_seconds(), self.database_reachable
        )

    def is_lagging(self, head: Head) -> bool:
        """True for an answer from the past, such as a replica's or a restored backup's.

        Within an epoch neither version nor revision goes back, and an epoch once left stays left.
        """
        if self.copy is None:
            return False
        ours, theirs = self.copy.publication, head.publication
        if theirs.epoch != ours.epoch:
            return theirs.epoch in self._left_epochs
        return theirs.version < ours.version or head.revision < self._revision

    def lacks_copy(self, head: Head) -> bool:
        return self.copy is None or self.copy.publication != head.publication

    def lacks_tokens(self, head: Head) -> bool:
        return self.tokens is None or self._revision != head.revision

    def install_copy(self, copy: Copy, confirmed_at: float) -> None:
        """Serve `copy` from now on; the caller has made sure that it is not a lagging one."""
        if self.copy is not None and self.copy.publication.epoch != copy.publication.epoch:
            self._left_epochs.add(self.copy.publication.epoch)
        self._confirmed_at = confirmed_at
        self.copy = copy

    def install_tokens(self, revision: int, tokens: TokenTable) -> None:
        self._revision = revision
        self.tokens = tokens

    def confirm(self, at: float) -> None:
        """The copy was the database's at `at`, on the monotonic clock."""
        self._confirmed_at = at

    def now(self) -> float:
        return self._monotonic()
