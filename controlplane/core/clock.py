"""The database's clock, read once per transaction and passed on as `now`; also time zones."""

from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.db import connection


def db_now() -> datetime:
    """Return the database server's current time, aware, UTC, with microseconds."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return now


def load_time_zone(name: str) -> ZoneInfo:
    """Return the named time zone, or UTC if an update of this server has removed the name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo("UTC")
