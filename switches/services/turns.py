"""One turn over what is due: each by itself, so that one that fails does not keep the rest."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from controlplane.core.database_errors import is_away

Due = TypeVar("Due")


def each(due: Iterable[Due], deal: Callable[[Due], int], failing: str) -> int:
    """Deal with each of them, in whatever transaction `deal` opens; the sum of what it returns.

    Raises an :class:`ExceptionGroup` named `failing` at the end, with every failure. Without a
    database nothing else would go better: its error is raised at once.
    """
    done, failures = 0, []
    for one in due:
        try:
            done += deal(one)
        except Exception as error:
            if is_away(error):
                raise
            failures.append(error)
    if failures:
        raise ExceptionGroup(failing, failures)
    return done
