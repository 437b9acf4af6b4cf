"""A value in memory that all requests of a process share for some seconds."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Generic, TypeVar

T = TypeVar("T")


class TimedCache(Generic[T]):
    """The result of `load`, loaded again once it is older than `max_age`.

    Threads that find it too old at the same time each load it.
    """

    def __init__(self, max_age: timedelta, load: Callable[[datetime], T]) -> None:
        self._max_age = max_age
        self._load = load
        self._loaded: tuple[datetime, int | None, T] | None = None

    def get(self, now: datetime, version: int | None = None) -> T:
        """Return the value, loaded for this `version` of the data if one is given.

        One from after `now` is loaded again, because a clock was set back.
        """
        loaded = self._loaded
        if (
            loaded is None
            or not timedelta() <= now - loaded[0] <= self._max_age
            or version not in (None, loaded[1])
        ):
            self._loaded = loaded = now, version, self._load(now)
        return loaded[2]

    def clear(self) -> None:
        self._loaded = None
