"""Where good answers are kept, to stand in for those that don't come."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from types import MethodType
from typing import Any, Protocol

from switchgear.finding import Finder, finder
from switchgear.patterns import forks


class Missing:
    """There is none, where None could be one."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = Missing()


class Cache(Protocol):
    """What a fallback asks. For calls of coroutine functions both may be coroutine functions."""

    def get(self, key: Any) -> Any:
        """What was put there, or `MISSING`."""
        ...

    def put(self, key: Any, value: Any) -> Any:
        """Keep `value`."""
        ...


class MemoryCache:
    """At most `most` answers for at most `seconds` each, in this process; what was not asked for
    the longest goes first. It gives what it was given, not a copy: don't change it. Safe to use
    from any thread."""

    def __init__(
        self, seconds: float, most: int = 1_000, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if not seconds > 0 or most < 1:
            raise ValueError(f"a cache keeps something, not {most} answers for {seconds} s")
        self._seconds = seconds
        self._most = most
        self._clock = clock
        self._lock = threading.RLock()
        self._kept: OrderedDict[Hashable, tuple[float, Any]] = OrderedDict()
        forks.register(self)

    def get(self, key: Hashable) -> Any:
        """What was put there, unless it is too old; else `MISSING`."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return MISSING
            if self._clock() - found[0] >= self._seconds:
                del self._kept[key]
                return MISSING
            self._kept.move_to_end(key)
            return found[1]

    def put(self, key: Hashable, value: Any) -> None:
        """Keep `value`, in the place of what was there."""
        with self._lock:
            self._kept[key] = (self._clock(), value)
            self._kept.move_to_end(key)
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def after_fork(self) -> None:
        """In a child: empty, as another thread may have been changing it."""
        forks.forsake((self._lock, self._kept))
        self._lock = threading.RLock()
        self._kept = OrderedDict()


def key_finder(function: Callable[..., Any], find: Callable[..., Any] | None) -> Finder:
    """Finds the key of a call of `function`: what `find` makes of its arguments; without that, the
    function itself and all arguments, with their types: 1, 1.0 and True are three.

    A function made anew for each call, such as a lambda, has another key each time, for what it
    closes over is not to be seen.
    """
    if find is not None:
        return finder(find, function)
    identity = _identity(function)

    def key(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Hashable:
        named = tuple(sorted(kwargs.items()))
        kinds = (*map(type, args), *(type(value) for _, value in named))
        return identity, args, named, kinds

    return key


def _identity(function: Any) -> Hashable:
    if isinstance(function, MethodType):
        return function.__self__, _identity(function.__func__)
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function  # type: ignore[no-any-return]
