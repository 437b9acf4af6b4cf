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
        self._loaded: tuple[datetime, T] | None = None

    def get(self, now: datetime) -> T:
        """Return the value; one from after `now` is loaded again, because a clock was set back."""
        loaded = self._loaded
        if loaded is None or not timedelta() <= now - loaded[0] <= self._max_age:
            self._loaded = loaded = now, self._load(now)
        return loaded[1]

    def clear(self) -> None:
        self._loaded = None
