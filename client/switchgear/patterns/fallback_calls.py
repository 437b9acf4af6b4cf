"""The steps that answer a failed call: the targets in order, the cache, the default.

They are a generator of the functions to call, so that threads and event loops share the logic.
"""

import functools
from collections.abc import Callable, Generator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from switchgear.argument_finders import KeyFinder
from switchgear.cancellation import check, find_refusal
from switchgear.failures.error_labels import describe_error
from switchgear.guarded_keys import GuardedKeys, GuardedSteps
from switchgear.guards import Guard
from switchgear.patterns import deadline
from switchgear.patterns.answers import Answer, partial_count, record_answer
from switchgear.patterns.caches import MISSING, key_finder
from switchgear.patterns.fallback_plan import FallbackPlan
from switchgear.patterns.fallback_targets import BoundTarget
from switchgear.patterns.streams import AsyncPrefetchedStream, PrefetchedStream, StepContext
from switchgear.refusals import Refused

CallSteps = Generator[Callable[[], Any], Any, Answer[Any] | BaseException]
"""A generator that yields the next function to call and receives its result or its error. It
returns the answer, or the error to raise."""


@dataclass(eq=False)
class FallbackCalls:
    """The steps of a fallback after each call of one function, when it has returned or failed.

    `guard` is the guard of the function's policy, which checks switches: unless `on_switch` is set,
    it is checked before each target and applies while a target runs.
    """

    plan: FallbackPlan
    function: Callable[..., Any]
    guard: Guard | None = None
    is_async: bool = False
    is_stream: bool = False
    _bound: tuple[list[BoundTarget], KeyFinder] | None = None
    _find_switches: Callable[[Any, Any], GuardedKeys] | None = None

    def on_result(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], value: Any, is_partial: bool
    ) -> CallSteps:
        """Check, cache and label `value`, the result of the call; if it is not good, fall back.

        `is_partial` is True if `value` depends on a partial answer; then it is not cached.
        """
        plan = self.plan
        try:
            plan.check(value)
        except Exception as error:
            return (yield from self.on_error(args, kwargs, error))
        if is_partial:
            return record_answer(Answer(value, is_partial=True))
        if plan.cache is not None:
            try:
                key = self._bindings()[1](args, kwargs)
                yield functools.partial(plan.cache.put, key, value)
                plan.has_warned = False
            except Exception as error:
                plan.warn_cache_failure(error)
        return record_answer(Answer(value))

    def on_error(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], first: Exception
    ) -> CallSteps:
        """Return an answer in place of `first`, the error of the call, or the error to raise."""
        plan = self.plan
        if not plan.covers(first):
            return first
        try:
            if self.guard is not None and self._find_switches is None:
                self._find_switches = self.guard.switches_of(self.function)
            switches = self._find_switches and self._find_switches(args, kwargs)
        except Exception as error:  # The call's switches are unknown.
            return error
        selecting_error, last, before = first, first, None
        failures = [("call", describe_error(first))]
        for bound in self._bindings()[0]:
            target = bound.target
            if deadline.remaining_seconds() == 0:
                break
            if (refusal := self._refusal(switches)) is not None:
                return _raised_from(refusal, last)
            if switches is not None and plan.on_switch:
                selecting_error = switches.refusal() or selecting_error
            try:
                if not target.applies_to(selecting_error):
                    continue
                if plan.on_target is not None:
                    plan.on_target(before, target, last)
                value = yield from self._call_target(
                    functools.partial(bound, args, kwargs, last), switches
                )
                plan.check(value)
            except Exception as error:
                failures.append((target.name, describe_error(error)))
                if not plan.may_continue(error):
                    return error
                last, before = error, target
                continue
            return self._label(Answer(value, target.name, target.is_partial), failures, first)
        if (refusal := self._refusal(switches)) is not None:
            return _raised_from(refusal, last)
        return (yield from self._last_resort(args, kwargs, first, failures))

    def _call_target(
        self, call: Callable[[], Any], switches: GuardedKeys | None
    ) -> Generator[Callable[[], Any], Any, Any]:
        """Call a target of the fallback; refuse the call while one of the `switches` is engaged.

        For a stream, the switches apply during each step.
        """
        step_context: StepContext = nullcontext()
        if switches is not None and not self.plan.on_switch:
            step_context = GuardedSteps(switches, self.is_async, has_begun=True)
        if self.is_stream:
            return (yield self._make_opener(call, step_context))
        with step_context:
            return (yield call)

    def _make_opener(
        self, call: Callable[[], Any], step_context: StepContext | None = None
    ) -> Callable[[], Any]:
        kind = AsyncPrefetchedStream if self.is_async else PrefetchedStream
        return kind(call, step_context).open

    def _label(
        self, given: Answer[Any], failures: list[tuple[str, str]], first: Exception
    ) -> Answer[Any]:
        """Return the answer `given` with the failures before it as `causes`, counted and recorded.

        A stream is not kept in the record.
        """
        answer = replace(given, causes=tuple(text for _, text in failures))
        self.plan.record_fallback(replace(answer, value=None) if self.is_stream else answer, first)
        return answer

    def _last_resort(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        first: Exception,
        failures: list[tuple[str, str]],
    ) -> CallSteps:
        """Return the answer after all targets: from the cache, else the default, else an error."""
        plan = self.plan
        value, age = yield from self._read_cache(args, kwargs)
        if value is not MISSING:
            answer = Answer(value, "cache", is_partial=True, age_seconds=age)
            return self._label(answer, failures, first)
        if plan.make_default is not None:
            try:
                make = plan.make_default
                value = (yield self._make_opener(make)) if self.is_stream else make()
            except Exception as error:
                failures.append(("default", describe_error(error)))
            else:
                return self._label(Answer(value, "default", is_partial=True), failures, first)
        return _final_error(plan, first, failures)

    def _read_cache(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Generator[Callable[[], Any], Any, tuple[Any, float | None]]:
        """Return the cached answer and its age in seconds, None if the cache reports none.

        Return `MISSING` and None if there is no answer.
        """
        plan = self.plan
        if plan.cache is None or self.is_stream:
            return MISSING, None
        get_aged = getattr(plan.cache, "get_aged", None)
        try:
            key = self._bindings()[1](args, kwargs)
            if get_aged is None:
                found = (yield functools.partial(plan.cache.get, key)), None
            else:
                found = yield functools.partial(get_aged, key)
            value, age = found
            plan.has_warned = False
        except Exception as error:
            plan.warn_cache_failure(error)
            return MISSING, None
        return value, age

    def _bindings(self) -> tuple[list[BoundTarget], KeyFinder]:
        if self._bound is None:
            plan = self.plan
            self._bound = (
                [BoundTarget(target, self.function) for target in plan.targets],
                key_finder(self.function, plan.cache_key),
            )
        return self._bound

    def _refusal(self, switches: GuardedKeys | None) -> Refused | None:
        if switches is None or self.plan.on_switch:
            return find_refusal()
        return find_refusal((switches,))


def _raised_from(refusal: Refused, cause: BaseException) -> Refused:
    refusal.__cause__ = cause
    return refusal


def _final_error(
    plan: FallbackPlan, first: Exception, failures: list[tuple[str, str]]
) -> BaseException:
    """Return the error to raise if no source answers: `first`, or what `exhausted` makes of it.

    Notes on the failed targets are added to `first`.
    """
    if not hasattr(first, "__notes__"):
        for who, text in failures[1:]:
            first.add_note(f"fallback {who} of {plan.name}: {text}")
    if plan.exhausted is None:
        return first
    made = plan.exhausted(first)
    made.__cause__ = first
    return made


@dataclass(eq=False, repr=False)
class FallbackBlock:
    """A `with` block that supplies a default on failure, by :meth:`Fallback.catching`.

    `value` is set in the block or by the default; `answer` is the value with its label.
    """

    _plan: FallbackPlan
    _make_default: Callable[[], Any] | None
    value: Any = None
    answer: Answer[Any] | None = None

    def __enter__(self) -> "FallbackBlock":
        self._before = partial_count()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> bool:
        if error is None:
            self.answer = record_answer(
                Answer(self.value, is_partial=partial_count() != self._before)
            )
            return False
        plan = self._plan
        if self._make_default is None or not plan.covers(error):
            return False
        check(cause=error)
        self.value = self._make_default()
        answer = Answer(self.value, "default", True, (describe_error(error),))
        self.answer = plan.record_fallback(answer, error)
        return True

    async def __aenter__(self) -> "FallbackBlock":
        return self.__enter__()

    async def __aexit__(self, *raised: Any) -> bool:
        return self.__exit__(*raised)
