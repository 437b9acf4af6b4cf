"""The lock that machines queue behind: one wish after another, and no person waits for them.

It is taken first, before the publication row, and that row only by what may publish.
"""

from django.db import connection

TRIPS_LOCK = 0x7219  # any number nobody else uses for an advisory lock


def machines() -> None:
    """Wait for the other wishes; held until the end of the transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [TRIPS_LOCK])
