"""The one clock that counts: the database's, read once per transaction and handed down."""

from datetime import datetime

from django.db import connection


def db_now() -> datetime:
    """The database server's current time, aware, UTC, with microseconds."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (now,) = cursor.fetchone()
    moment: datetime = now
    return moment
