"""Processing of due items, each in its own transaction, with errors raised at the end."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from controlplane.core.database_errors import is_away

Due = TypeVar("Due")


def process_each(due: Iterable[Due], process: Callable[[Due], int], failing: str) -> int:
    """Call `process` for each item and return the sum of the numbers it returns.

    Errors are collected and raised at the end as an :class:`ExceptionGroup` with the message
    `failing`; an unavailable database is raised at once.
    """
    done, failures = 0, []
    for item in due:
        try:
            done += process(item)
        except Exception as error:
            if is_away(error):
                raise
            failures.append(error)
    if failures:
        raise ExceptionGroup(failing, failures)
    return done
