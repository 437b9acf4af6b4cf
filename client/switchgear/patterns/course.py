"""The course of a call that has a fallback: the targets in order, the cache, the default. Calls
nothing itself: it gives what is to be called, so that threads and event loops share it."""

import asyncio
import concurrent.futures
import copy
import functools
import logging
import threading
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from inspect import isawaitable, iscoroutine
from typing import Any

from switchgear.failing.responses import respond
from switchgear.failing.words import is_told_to_stop, said_by
from switchgear.finding import Finder
from switchgear.guards import SwitchEngaged
from switchgear.journal import complain, note
from switchgear.patterns import deadline, forks
from switchgear.patterns.answers import Answer, told
from switchgear.patterns.caches import MISSING, Cache, key_finder
from switchgear.patterns.counters import Counters
from switchgear.patterns.fallback_targets import Asking, FallbackTarget
from switchgear.refusals import within
from switchgear.wrapping import NotAwaited

MISTAKES = (NameError, SyntaxError, ImportError)
"""Errors that only a change of the code, or of what is installed, can mend."""

CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)

On = type[BaseException] | tuple[type[BaseException], ...] | Callable[[BaseException], bool]

OnTarget = Callable[[FallbackTarget | None, FallbackTarget, BaseException], object]

Turns = Generator[Callable[[], Any], Any, Answer[Any] | BaseException]
"""Gives what is to be called next, is sent what came of it or thrown what it raised, and returns
the answer, or the error that is to be raised."""

log = logging.getLogger("switchgear")


class NotGood(Exception):
    """Something answered, and `is_good` did not take it."""


@dataclass(kw_only=True)
class Course:
    """See :class:`~switchgear.patterns.fallback.Fallback`, whose parameters these are."""

    name: str
    targets: tuple[FallbackTarget, ...]
    cache: Cache | None
    cache_key: Callable[..., Any] | None
    make_default: Callable[[], Any] | None
    on: On
    on_switch: bool
    is_good: Callable[[Any], bool] | None
    counters: Counters
    on_target: OnTarget | None
    exhausted: Callable[[BaseException], BaseException] | None
    tally: "Tally" = field(default_factory=lambda: Tally())
    has_complained: bool = False

    def answers(self, error: BaseException) -> bool:
        """Whether something may stand in for the call that raised `error`."""
        if isinstance(error, NotAwaited):
            return False  # It would be answered so always, and nobody would see why.
        return (_is_one_of(self.on, error) or self._is_switch(error)) and self.goes_on(error)

    def goes_on(self, error: BaseException) -> bool:
        """Whether anything may be asked after `error`, whoever raised it; says in the journal what
        people should know of it."""
        if isinstance(error, BaseExceptionGroup):
            return all(self.goes_on(each) for each in error.exceptions)
        if not isinstance(error, Exception) or isinstance(error, CANCELLED):
            return False
        if is_told_to_stop(error):
            return False
        if not self.on_switch and _is_switched(error):
            return False
        return isinstance(error, NotGood | SwitchEngaged) or respond(error, self.name).fallback

    def _is_switch(self, error: BaseException) -> bool:
        return self.on_switch and _is_switched(error)

    def asks(self, error: BaseException) -> bool:
        """Whether `error` is one of those that this is for."""
        return self.on_switch if _is_switched(error) else _is_one_of(self.on, error)

    def stand_in(
        self,
        value: Any,
        source: str,
        is_partial: bool,
        causes: tuple[str, ...],
        first: BaseException,
        age_seconds: float | None = None,
    ) -> Answer[Any]:
        """Return the answer, counted and told."""
        self.tally.one_more(source)
        self.counters.fallback()
        note("call_fallback", self.name, source=source, error=type(first).__name__)
        return told(Answer(value, source, is_partial, causes, age_seconds))

    def check(self, value: Any) -> None:
        """Raises :class:`NotGood`."""
        if self.is_good is not None and not self.is_good(value):
            raise NotGood(f"{self.name}: an answer that is not good")

    def complain(self, error: Exception) -> None:
        """The cache fails: nobody's call does for that. Once, until it works again."""
        if not self.has_complained:
            self.has_complained = True
            log.warning(
                "switchgear: the cache of fallback %s fails: %s", self.name, type(error).__name__
            )


class Tally:
    """How many calls were answered by what. Safe to use from any thread."""

    def __init__(self) -> None:
        self.after_fork()
        forks.register(self)

    def one_more(self, source: str) -> None:
        with self._lock:
            self._answered[source] += 1

    def counted(self) -> dict[str, int]:
        with self._lock:
            return dict(self._answered)

    def after_fork(self) -> None:
        """In a child, count from nought."""
        self._lock = threading.RLock()
        self._answered: Counter[str] = Counter()


class Calls:
    """The calls of one function."""

    def __init__(self, course: Course, function: Callable[..., Any]) -> None:
        self._course = course
        self._function = function
        self._made: tuple[list[Asking], Finder] | None = None

    def came(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], value: Any, is_partial: bool
    ) -> Turns:
        """The call gave `value`, and met a partial answer on its way if it `is_partial`."""
        course = self._course
        try:
            course.check(value)
        except Exception as error:
            return (yield from self.failed(args, kwargs, error))
        if is_partial:
            return told(Answer(value, is_partial=True))
        if course.cache is not None:
            try:
                key = self._find()[1](args, kwargs)
                yield functools.partial(course.cache.put, key, value)
                course.has_complained = False
            except Exception as error:
                course.complain(error)
        return told(Answer(value))

    def failed(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], first: Exception) -> Turns:
        """The call raised `first`."""
        course = self._course
        if not course.answers(first):
            return first
        said = [("call", said_by(first))]
        last, before = first, None
        for asking in self._find()[0]:
            target = asking.target
            if deadline.left() == 0:
                break
            try:
                if not target.is_for(first):
                    continue
                if course.on_target is not None:
                    course.on_target(before, target, last)
                value = yield functools.partial(asking, args, kwargs, last)
                course.check(value)
            except Exception as error:
                said.append((target.name, said_by(error)))
                if not course.goes_on(error):
                    return error
                last, before = error, target
                continue
            return course.stand_in(value, target.name, target.is_partial, _texts(said), first)
        value, age = yield from self._remembered(args, kwargs)
        if value is not MISSING:
            return course.stand_in(value, "cache", True, _texts(said), first, age)
        if course.make_default is not None:
            try:
                value = course.make_default()
            except Exception as error:
                said.append(("default", said_by(error)))
            else:
                return course.stand_in(value, "default", True, _texts(said), first)
        return _exhausted(course, first, said)

    def _remembered(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Generator[Callable[[], Any], Any, tuple[Any, float | None]]:
        """Return the cached answer, or `MISSING`, and its age in seconds if the cache tells it."""
        course = self._course
        if course.cache is None:
            return MISSING, None
        get_aged = getattr(course.cache, "get_aged", None)
        try:
            key = self._find()[1](args, kwargs)
            if get_aged is None:
                found = (yield functools.partial(course.cache.get, key)), None
            else:
                found = yield functools.partial(get_aged, key)
            value, age = found
            course.has_complained = False
        except Exception as error:
            course.complain(error)
            return MISSING, None
        return value, age

    def _find(self) -> tuple[list[Asking], Finder]:
        if self._made is None:
            course = self._course
            self._made = (
                [Asking(target, self._function) for target in course.targets],
                key_finder(self._function, course.cache_key),
            )
        return self._made


def drive(turns: Turns) -> Answer[Any] | BaseException:
    """Calls what it gives."""
    try:
        call = next(turns)
        while True:
            try:
                value = _not_awaitable(call())
            except Exception as error:
                call = turns.throw(error)
            else:
                call = turns.send(value)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


async def adrive(turns: Turns) -> Answer[Any] | BaseException:
    """Calls what it gives, and awaits what is to be awaited."""
    try:
        call = next(turns)
        while True:
            try:
                value = call()
                if isawaitable(value):
                    value = await value
            except Exception as error:
                call = turns.throw(error)
            else:
                call = turns.send(value)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def is_answerable(error: BaseException) -> bool:
    """Return whether a fallback without an `on` is for this error: a mistake in the code must not
    become an answer."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_answerable, error.exceptions))
    return isinstance(error, Exception) and not isinstance(error, MISTAKES)


def default_maker(default: Any, factory: Callable[[], Any] | None) -> Callable[[], Any] | None:
    """Return what makes the default of one call, None without a default. Raises
    :class:`ValueError` for two defaults, :class:`TypeError` for a factory that can't be called."""
    if factory is None:
        if default is MISSING:
            return None
        # One object for all calls would carry what one of them adds to it into the others.
        is_mutable = isinstance(default, list | dict | set)
        return functools.partial(copy.copy, default) if is_mutable else lambda: default
    if default is not MISSING:
        raise ValueError("a fallback has a default or default_factory, not both")
    if not callable(factory):
        raise TypeError(f"default_factory must be callable, not {factory!r:.100}")
    return factory


def _is_switched(error: BaseException) -> bool:
    """Also if an SDK has wrapped it up."""
    return any(isinstance(each, SwitchEngaged) for each in within(error))


def _is_one_of(on: On, error: BaseException) -> bool:
    if isinstance(error, NotGood):
        return True
    if not isinstance(on, type | tuple):
        try:
            return bool(on(error))
        except Exception:  # The caller shall get what the call raised, and not this.
            complain("%r could not say whether to fall back", on)
            return False
    if isinstance(error, BaseExceptionGroup) and not isinstance(error, on):
        return all(_is_one_of(on, each) for each in error.exceptions)
    return isinstance(error, on)


def _not_awaitable(value: Any) -> Any:
    if iscoroutine(value):
        value.close()
        raise TypeError("a coroutine, which only a coroutine function could await")
    return value


def _exhausted(course: Course, first: Exception, said: list[tuple[str, str]]) -> BaseException:
    """The first error; with notes, unless it is one that is raised again and again."""
    if not hasattr(first, "__notes__"):
        for who, text in said[1:]:
            first.add_note(f"fallback {who} of {course.name}: {text}")
    if course.exhausted is None:
        return first
    made = course.exhausted(first)
    made.__cause__ = first
    return made


def _texts(said: list[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(text for _, text in said)
