"""The one clock that counts: the database's, read once per transaction and handed down."""

from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.db import connection


def db_now() -> datetime:
    """The database server's current time, aware, UTC, with microseconds."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (now,) = cursor.fetchone()
    moment: datetime = now
    return moment


def zone(name: str) -> ZoneInfo:
    """A time zone that somebody chose. UTC for one that this server no longer knows: names go with
    new releases of the time zone database, and neither a page nor a rotation may end with them."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo("UTC")
