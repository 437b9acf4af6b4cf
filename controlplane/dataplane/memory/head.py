"""The one row polled each second."""

from datetime import datetime
from typing import NamedTuple

from switches.snapshot import SnapshotVersion


class Head(NamedTuple):
    """The present version, the credentials' revision, how many switches were ever registered, the
    database's time, the version of policies and overrides and when it was given (None before the
    first), the revision of what is away, and whether PostgreSQL refuses changes."""

    publication: SnapshotVersion
    revision: int
    registrations: int
    now: datetime
    policies: int = 0
    policies_at: datetime | None = None
    degradation: int = 0
    is_read_only: bool = False
