"""The one row polled each second."""

from datetime import datetime
from typing import NamedTuple

from switches.snapshot import Publication


class Head(NamedTuple):
    """The present version, the credentials' revision, how many switches were ever registered, and
    the database's time."""

    publication: Publication
    revision: int
    registrations: int
    now: datetime
