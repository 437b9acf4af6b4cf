"""The database's clock, read once per transaction and passed down, and time zones."""

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
