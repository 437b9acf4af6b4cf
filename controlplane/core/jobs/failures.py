"""Classification of the errors of jobs, and their texts."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import InterfaceError, OperationalError, connection

MAX_LENGTH = 2000


def is_database_away(error: BaseException) -> bool:
    """Return True if the database connection is broken. Call it outside of transactions.

    Timeouts and deadlocks fail one job only, so they return False.
    """
    return isinstance(error, (OperationalError, InterfaceError)) and not connection.is_usable()


def describe_error(error: BaseException) -> str:
    """Return an error as text that PostgreSQL can store, at most 2,000 characters."""
    text = f"{type(error).__name__}: {error}".replace("\x00", "")
    return text.encode(errors="backslashreplace").decode()[:MAX_LENGTH]


def start_clock(now: datetime) -> Callable[[], datetime]:
    """Return a clock started at `now`: a function that adds the whole seconds since this call."""
    began = time.monotonic()
    return lambda: now + timedelta(seconds=int(time.monotonic() - began))
