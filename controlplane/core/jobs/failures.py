"""What goes wrong with a job: told apart from a database that is away, and put into words."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import InterfaceError, OperationalError, connection

MAX_LENGTH = 2000


def is_away(error: BaseException) -> bool:
    """Whether nothing can be written at all. To be asked outside of transactions.

    A statement that took too long, a lock that was not to be had and a deadlock are not that: they
    are the failure of the one job that they happened to, and the others go on.
    """
    return isinstance(error, (OperationalError, InterfaceError)) and not connection.is_usable()


def said(error: BaseException) -> str:
    """What went wrong, in characters that PostgreSQL takes."""
    text = f"{type(error).__name__}: {error}".replace("\x00", "")
    return text.encode(errors="backslashreplace").decode()[:MAX_LENGTH]


def clock(now: datetime) -> Callable[[], datetime]:
    """The time as it goes on from `now`, in whole seconds: what is done at once is of one time."""
    began = time.monotonic()
    return lambda: now + timedelta(seconds=int(time.monotonic() - began))
