"""Advisory locks of ticks that must not overlap."""

from django.db import connection

EVALUATION, ALERTS, THRESHOLDS = 1, 2, 3
_SPACE = 0x510  # First key of our two-key advisory locks; used nowhere else.


def try_lock(turn: int) -> bool:
    """Take a lock until the end of the caller's transaction; return whether it was free."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", [_SPACE, turn])
        (mine,) = cursor.fetchone()
    return bool(mine)


def wait_for_lock(turn: int) -> None:
    """Take a lock until the end of the caller's transaction, waiting for it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [_SPACE, turn])
