"""The one clock that counts: the database's, read once per transaction and handed down."""

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


def zone(name: str) -> ZoneInfo:
    """Return the named time zone, or UTC if this server doesn't have it.

    Names come and go with releases of the time zone database; a removed one must not break a page
    or a rotation.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo("UTC")
