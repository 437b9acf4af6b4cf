"""The sequence of a call that has a fallback: the targets in order, the cache, the default.

It yields the functions to call instead of calling them, so that threads and event loops share it.
"""

import functools
from collections.abc import Callable, Generator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from inspect import isawaitable, iscoroutine
from typing import Any

from switchgear.cancellation import find_refusal
from switchgear.failures.error_labels import said_by
from switchgear.finding import Finder
from switchgear.guarded_keys import GuardedKeys, GuardedSteps
from switchgear.guards import Guard
from switchgear.patterns import deadline
from switchgear.patterns.answers import Answer, told
from switchgear.patterns.caches import MISSING, key_finder
from switchgear.patterns.fallback_plan import Course
from switchgear.patterns.fallback_targets import Asking
from switchgear.patterns.streams import Around, AsyncStream, Stream
from switchgear.refusals import Refused

Turns = Generator[Callable[[], Any], Any, Answer[Any] | BaseException]
"""A generator that yields the next function to call, receives its result or its error, and returns
the answer, or the error to raise."""


class Calls:
    """The calls of one function. `guard` is that of its policy: it is checked again before each
    target, and applies while one runs, unless `on_switch` is set."""

    def __init__(
        self,
        course: Course,
        function: Callable[..., Any],
        guard: Guard | None = None,
        *,
        is_async: bool = False,
        is_stream: bool = False,
    ) -> None:
        self._course = course
        self._function = function
        self._guard = guard
        self._is_async, self._is_stream = is_async, is_stream
        self._made: tuple[list[Asking], Finder] | None = None
        self._find_switches: Callable[[Any, Any], GuardedKeys] | None = None

    def came(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], value: Any, is_partial: bool
    ) -> Turns:
        """Handle `value`, returned by the call; `is_partial` if it depends on a partial answer."""
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
        """Handle `first`, the error raised by the call."""
        course = self._course
        if not course.answers(first):
            return first
        try:
            switches = self._switches(args, kwargs)
        except Exception as error:  # Its switches are unknown.
            return error
        asked_for, last, before = first, first, None
        said = [("call", said_by(first))]
        for asking in self._find()[0]:
            target = asking.target
            if deadline.left() == 0:
                break
            if (refusal := self._refusal(switches)) is not None:
                return _raised_from(refusal, last)
            if switches is not None and course.on_switch:
                asked_for = switches.refusal() or asked_for
            try:
                if not target.is_for(asked_for):
                    continue
                if course.on_target is not None:
                    course.on_target(before, target, last)
                value = yield from self._asked(
                    functools.partial(asking, args, kwargs, last), switches
                )
                course.check(value)
            except Exception as error:
                said.append((target.name, said_by(error)))
                if not course.goes_on(error):
                    return error
                last, before = error, target
                continue
            return self._stand_in(value, target.name, target.is_partial, said, first)
        if (refusal := self._refusal(switches)) is not None:
            return _raised_from(refusal, last)
        return (yield from self._last_resort(args, kwargs, first, said))

    def _asked(
        self, call: Callable[[], Any], switches: GuardedKeys | None
    ) -> Generator[Callable[[], Any], Any, Any]:
        """Call a target. The switches apply while it runs, or in each step of a stream, so that
        waits inside it are woken."""
        around: Around = nullcontext()
        if switches is not None and not self._course.on_switch:
            around = GuardedSteps(switches, self._is_async, has_begun=True)
        if self._is_stream:
            return (yield self._opened(call, around))
        with around:
            return (yield call)

    def _opened(self, call: Callable[[], Any], around: Around | None = None) -> Callable[[], Any]:
        kind = AsyncStream if self._is_async else Stream
        return kind(call, around).open

    def _stand_in(
        self,
        value: Any,
        source: str,
        is_partial: bool,
        said: list[tuple[str, str]],
        first: Exception,
        age_seconds: float | None = None,
    ) -> Answer[Any]:
        """Return the answer `value`; the label that is stored for a stream does not refer to the
        stream."""
        texts = tuple(text for _, text in said)
        if not self._is_stream:
            return self._course.stand_in(value, source, is_partial, texts, first, age_seconds)
        label = self._course.stand_in(None, source, is_partial, texts, first)
        return replace(label, value=value)

    def _last_resort(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        first: Exception,
        said: list[tuple[str, str]],
    ) -> Turns:
        """Return the answer of the cache, else the default, else the error of the call."""
        course = self._course
        value, age = yield from self._remembered(args, kwargs)
        if value is not MISSING:
            return self._stand_in(value, "cache", True, said, first, age)
        if course.make_default is not None:
            try:
                make = course.make_default
                value = (yield self._opened(make)) if self._is_stream else make()
            except Exception as error:
                said.append(("default", said_by(error)))
            else:
                return self._stand_in(value, "default", True, said, first)
        return _exhausted(course, first, said)

    def _remembered(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Generator[Callable[[], Any], Any, tuple[Any, float | None]]:
        """Return the cached answer, or `MISSING`, and its age in seconds if the cache reports
        it."""
        course = self._course
        if course.cache is None or self._is_stream:
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

    def _switches(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> GuardedKeys | None:
        if self._guard is None:
            return None
        if self._find_switches is None:
            self._find_switches = self._guard.switches_of(self._function)
        return self._find_switches(args, kwargs)

    def _refusal(self, switches: GuardedKeys | None) -> Refused | None:
        if switches is None or self._course.on_switch:
            return find_refusal()
        return find_refusal((switches,))


def drive(turns: Turns) -> Answer[Any] | BaseException:
    """Call the functions that `turns` yields; return its answer, or the error to raise."""
    try:
        call = next(turns)
        while True:
            try:
                value = _not_awaitable(call())
            except BaseException as error:
                call = turns.throw(error)
            else:
                call = turns.send(value)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


async def adrive(turns: Turns) -> Answer[Any] | BaseException:
    """Like :func:`drive`, in a coroutine: await the results that are awaitable."""
    try:
        call = next(turns)
        while True:
            try:
                value = call()
                if isawaitable(value):
                    value = await value
            except BaseException as error:
                call = turns.throw(error)
            else:
                call = turns.send(value)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def _not_awaitable(value: Any) -> Any:
    if iscoroutine(value):
        value.close()
        raise TypeError("got a coroutine, which only a coroutine function could await")
    return value


def _raised_from(refusal: Refused, cause: BaseException) -> Refused:
    refusal.__cause__ = cause
    return refusal


def _exhausted(course: Course, first: Exception, said: list[tuple[str, str]]) -> BaseException:
    """Return the first error, with notes unless it is one object that is raised repeatedly."""
    if not hasattr(first, "__notes__"):
        for who, text in said[1:]:
            first.add_note(f"fallback {who} of {course.name}: {text}")
    if course.exhausted is None:
        return first
    made = course.exhausted(first)
    made.__cause__ = first
    return made
