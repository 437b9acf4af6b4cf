"""Turns that must not overlap: whoever comes while another is at it leaves it to that one."""

from django.db import connection

_KEYS = {"conditions": 2}
_SPACE = 0x5317  # The first half of advisory locks of two numbers, which nobody else uses here.


def alone(turn: str) -> bool:
    """Whether the caller's transaction has this turn for itself; it keeps it until its end."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", [_SPACE, _KEYS[turn]])
        (mine,) = cursor.fetchone()
    return bool(mine)
