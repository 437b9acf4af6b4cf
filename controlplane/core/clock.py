"""Readers of the database's clock and of time zones.

Callers read the clock once per transaction and pass the time on as `now`.
"""

from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.db import connection


def db_now() -> datetime:
    """Return the database server's current time, aware, UTC, with microseconds."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (now,) = cursor.fetchone()
    moment: datetime = now
    return moment


def load_time_zone(name: str) -> ZoneInfo:
    """Return the named time zone, or UTC if this server doesn't have it.

    Releases of the time zone database add and remove names. A removed name must not break a page or
    an on-call rotation.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo("UTC")
