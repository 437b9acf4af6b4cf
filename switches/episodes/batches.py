"""Processing of batches in which each item has its own transaction."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from controlplane.core.database_errors import is_away

Due = TypeVar("Due")


def process_each(due: Iterable[Due], process: Callable[[Due], int], failing: str) -> int:
    """Call `process` for each item and return the sum of its results.

    If calls fail, raise an :class:`ExceptionGroup` named `failing` at the end; raise at once if
    the database is unavailable.
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
