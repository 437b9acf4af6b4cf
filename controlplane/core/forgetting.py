"""What is kept for a while only, deleted some at a time: no statement locks much, or for long."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import connection


def forget(
    statements: Iterable[tuple[str, timedelta]], now: datetime, *, at_once: int, most: int
) -> int:
    """Delete up to `most` old rows by each statement, `at_once` at a time; returns how many.

    Each takes `before` and `most`, and comes with how long its rows are kept.
    """
    return sum(
        _forget(statement, now - kept, at_once=at_once, most=most) for statement, kept in statements
    )


def _forget(statement: str, before: datetime, *, at_once: int, most: int) -> int:
    done = 0
    while done < most:
        with connection.cursor() as cursor:
            cursor.execute(statement, {"before": before, "most": at_once})
            deleted = int(cursor.rowcount)
        done += deleted
        if deleted < at_once:
            break
    return done
