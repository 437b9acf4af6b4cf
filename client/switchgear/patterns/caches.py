"""Caches of earlier good answers, for fallbacks."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, Protocol, runtime_checkable

from switchgear.argument_finders import KeyFinder, make_finder
from switchgear.patterns import forks


class Missing:
    """The type of :data:`MISSING`, which a cache returns if it has no value."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = Missing()


@runtime_checkable
class Cache(Protocol):
    """The interface of a cache for a fallback's good answers; services may implement it.

    Its methods may be coroutine functions, for calls of coroutine functions. A cache with the
    additional method `get_aged`, like :class:`MemoryCache`, reports the age of its answers.
    """

    def get(self, key: Any) -> Any:
        """Return the value of `key`, or `MISSING`."""

    def put(self, key: Any, value: Any) -> Any:
        """Store `value` under `key`."""


class MemoryCache:
    """A cache in this process: at most `max_entries` answers, each for at most `seconds`.

    The least recently used answer is dropped first. Stored objects are returned without copying.
    Safe to use from any thread. `clock` is monotonic. Raise :class:`ValueError` for limits out of
    range.
    """

    def __init__(
        self,
        seconds: float,
        max_entries: int = 1_000,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not seconds > 0 or max_entries < 1:
            raise ValueError(
                f"seconds must be above 0 and max_entries at least 1, not {seconds} and"
                f" {max_entries}"
            )
        self._seconds = seconds
        self._max_entries = max_entries
        self._clock = clock
        self._lock = threading.RLock()
        self._entries: OrderedDict[Hashable, tuple[float, Any]] = OrderedDict()
        forks.register(self)

    def get(self, key: Hashable) -> Any:
        """Return the value of `key`, or `MISSING` if there is none or it is too old."""
        return self.get_aged(key)[0]

    def get_aged(self, key: Hashable) -> tuple[Any, float | None]:
        """Return the value of `key` and its age in seconds; `MISSING` and None if there is none."""
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return MISSING, None
            age = self._clock() - found[0]
            if age >= self._seconds:
                del self._entries[key]
                return MISSING, None
            self._entries.move_to_end(key)
            return found[1], age

    def put(self, key: Hashable, value: Any) -> None:
        with self._lock:
            self._entries[key] = (self._clock(), value)
            self._entries.move_to_end(key)
            if len(self._entries) > self._max_entries:
                self._entries.popitem(last=False)

    def after_fork(self) -> None:
        """Empty the cache in a forked child: a thread of the parent may have been changing it."""
        forks.keep_alive((self._lock, self._entries))
        self._lock = threading.RLock()
        self._entries = OrderedDict()


def key_finder(function: Callable[..., Any], find: Callable[..., Any] | None) -> KeyFinder:
    """Return a function that computes the cache key of a call of `function` from its arguments.

    The key is the result of `find`. Without `find`, the key consists of the function itself and all
    arguments with their types: 1, 1.0 and True are three keys, also in tuples and frozensets. A
    function created for each call, such as a lambda, has a new key each time. Methods of two
    objects are different functions, even if the objects are equal. The key keeps function and
    arguments alive, so that no other object can take their identity.
    """
    if find is not None:
        return make_finder(find, function)
    # Bound methods compare their objects by identity, and functions compare themselves.
    is_itself = type(function) in (FunctionType, MethodType, BuiltinFunctionType)
    identity: Hashable = function if is_itself else _Same(function)

    def key(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Hashable:
        named = tuple((name, _with_type(value)) for name, value in sorted(kwargs.items()))
        return identity, tuple(map(_with_type, args)), named

    return key


class _Same:
    """A wrapper of an object, equal only to another wrapper of the identical object."""

    def __init__(self, one: object) -> None:
        self._one = one

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._one is other._one

    def __hash__(self) -> int:
        return id(self._one)


def _with_type(value: Any) -> Hashable:
    if isinstance(value, tuple):
        return type(value), value, tuple(map(_with_type, value))
    if isinstance(value, frozenset):
        return type(value), value, frozenset(map(_with_type, value))
    return type(value), value
