"""Failures of jobs: told apart from an unreachable database, and worded."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import InterfaceError, OperationalError, connection

MAX_LENGTH = 2000


def is_database_away(error: BaseException) -> bool:
    """Return True if nothing can be written at all. Call it outside of transactions.

    Timeouts, lock timeouts and deadlocks are failures of one job; the others go on.
    """
    return isinstance(error, (OperationalError, InterfaceError)) and not connection.is_usable()


def describe_error(error: BaseException) -> str:
    """Return an error as text in characters that PostgreSQL takes."""
    text = f"{type(error).__name__}: {error}".replace("\x00", "")
    return text.encode(errors="backslashreplace").decode()[:MAX_LENGTH]


def start_clock(now: datetime) -> Callable[[], datetime]:
    """Return a clock from `now` on in whole seconds, so that quick writes share a time."""
    began = time.monotonic()
    return lambda: now + timedelta(seconds=int(time.monotonic() - began))
