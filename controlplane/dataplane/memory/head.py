"""The summary row that the data plane polls each second."""

from datetime import datetime
from typing import NamedTuple

from switches.snapshot import SnapshotVersion


class DatabaseHead(NamedTuple):
    """Versions of everything the data plane follows, in one row.

    `revision` is the credentials'; `registrations` counts all switches ever registered; `now` is
    the database's time; `policies` is the version of policies and overrides, set at `policies_at`
    (None before the first); `degradation` is the revision of the degradation causes; `is_read_only`
    is True while PostgreSQL refuses changes.
    """

    publication: SnapshotVersion
    revision: int
    registrations: int
    now: datetime
    policies: int = 0
    policies_at: datetime | None = None
    degradation: int = 0
    is_read_only: bool = False
