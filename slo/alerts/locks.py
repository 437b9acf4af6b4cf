"""Turns that must not overlap."""

from django.db import connection

EVALUATION, ALERTS, THRESHOLDS = 1, 2, 3
_SPACE = 0x510  # The first half of advisory locks of two numbers, which nobody else uses here.


def try_lock(turn: int) -> bool:
    """Whether the caller's transaction has this turn for itself; it keeps it until its end."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", [_SPACE, turn])
        (mine,) = cursor.fetchone()
    return bool(mine)


def wait_for_lock(turn: int) -> None:
    """Have this turn for the caller's transaction, once whoever has it is done."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [_SPACE, turn])
