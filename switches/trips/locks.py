"""The advisory lock that serializes trips; people's actions never wait for it.

It is taken before the publication row, which only a request that may publish locks.
"""

from django.db import connection

TRIPS_LOCK = 0x7219  # Key of the advisory lock, used nowhere else.


def lock_machines() -> None:
    """Take the trips lock until the end of the transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [TRIPS_LOCK])
