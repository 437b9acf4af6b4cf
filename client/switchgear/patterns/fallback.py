"""Fallbacks: answers for a call that fails, from other functions, a cache or a default."""

import copy
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from types import CoroutineType
from typing import Any, ParamSpec, TypeVar

from switchgear.decorators import F, is_async_generator_function, refuse_coroutine, wrap_by_kind
from switchgear.generator_steps import drive, drive_async
from switchgear.guards import Guard
from switchgear.patterns.answers import (
    Answer,
    StreamLabel,
    partial_count,
    raise_or_return,
    record_value,
    require_latest_answer,
)
from switchgear.patterns.caches import MISSING, Cache
from switchgear.patterns.counters import Counters
from switchgear.patterns.fallback_calls import FallbackBlock, FallbackCalls
from switchgear.patterns.fallback_plan import (
    ErrorFilter,
    FallbackPlan,
    TargetHook,
    chain_plans,
    is_covered_by_default,
    make_default_factory,
)
from switchgear.patterns.fallback_targets import FallbackTarget, make_target
from switchgear.patterns.streams import (
    AsyncPrefetchedStream,
    PrefetchedStream,
    make_opener,
    make_stream_function,
)

P = ParamSpec("P")
T = TypeVar("T")


class Fallback:
    """A fallback: answers a failed call from targets, a cache or a default.

    The `targets` are tried in order, then the `cache` of earlier good answers, then the `default`.
    If none of them answers, the call's own error is raised, with a note on each failed target.

        @Fallback("chat->model", ask_small_model, default="Not now.")
        def ask_model(question: str) -> str: ...

    `on` selects the errors that are covered; the default is all but `NameError`, `SyntaxError` and
    `ImportError`, which are bugs. Cancellations and catastrophic failures are never covered.
    `SwitchEngaged` is covered only with `on_switch`, since the switch may be there to stop a leak.
    An answer that `is_good` rejects counts as failed, whether of the call or of a target. Only
    answers of the call itself are cached, under the key that `cache_key` makes of the arguments
    (see `key_finder`): if an answer depends on anything else, such as the signed-in user, the key
    must include it. A default that is a list, dict or set is copied for each call (a shallow copy);
    any other default is the same object each time, unless `default_factory` makes one.

    `on_target` is called with the target that failed (None for the call), the next target, and the
    error. `exhausted` converts the first error if no target, cache or default answers.

    Use it as a decorator for functions, coroutine functions and methods; `latest_answer()`, or
    `run` and `arun`, return the label of an answer. Targets and caches that are coroutine functions
    require a coroutine function. For a block: `with fallback.catching(…)`.

    Generators and asynchronous generators are covered until their first item; later errors are
    raised unchanged. The result of a target, or the default, becomes the items of the stream; a
    string, a mapping or a value that is not iterable is the only item. Streams don't use the cache.
    """

    def __init__(
        self,
        name: str = "unnamed",
        *targets: FallbackTarget | Callable[..., Any],
        cache: Cache | None = None,
        cache_key: Callable[..., Any] | None = None,
        default: Any = MISSING,
        default_factory: Callable[[], Any] | None = None,
        on: ErrorFilter | None = None,
        on_switch: bool = False,
        is_good: Callable[[Any], bool] | None = None,
        counters: Counters | None = None,
        on_target: TargetHook | None = None,
        exhausted: Callable[[BaseException], BaseException] | None = None,
    ) -> None:
        self._plan = FallbackPlan(
            name=name,
            targets=tuple(map(make_target, targets)),
            cache=cache,
            cache_key=cache_key,
            make_default=make_default_factory(default, default_factory),
            on=is_covered_by_default if on is None else on,
            on_switch=on_switch,
            is_good=is_good,
            counters=Counters() if counters is None else counters,
            on_target=on_target,
            exhausted=exhausted,
        )

    @property
    def name(self) -> str:
        return self._plan.name

    @property
    def counters(self) -> Counters:
        return self._plan.counters

    def __call__(self, function: F) -> F:
        """Return `function` with this fallback; a generator is covered until its first item.

        Raise :class:`TypeError` for a plain function if a target must be awaited, and for a
        generator with `is_good` or with only a cache.
        """
        return self.around(function, None)

    def around(
        self, function: F, original: Callable[..., Any] | None, guard: Guard | None = None
    ) -> F:
        """Return `function` with this fallback; `function` may be a wrapper of `original`.

        Targets and the cache key receive arguments by the signature of `original`; without it, by
        that of `function`. `guard`, which checks switches, is checked again before each target,
        unless `on_switch` is set.
        """
        return wrap_by_kind(
            function,
            plain=lambda inner: self.around_plain(inner, original or inner, guard),
            coroutine=lambda inner: self.around_coroutine(inner, original or inner, guard),
            generator=lambda inner: self._stream(inner, original or inner, guard),
            what="a fallback",
        )

    def run(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Answer[T]:
        """Call `function` with these arguments; return its value with a label, as an `Answer`."""
        self.around_plain(function, function, None)(*args, **kwargs)
        return require_latest_answer()

    async def arun(
        self, function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Answer[T]:
        """Like :meth:`run`, for a coroutine function."""
        await self.around_coroutine(function, function, None)(*args, **kwargs)
        return require_latest_answer()

    def counted_as(self, name: str, counters: Counters) -> "Fallback":
        """Return a copy for a policy, which reports under `name` and counts calls in `counters`."""
        same = copy.copy(self)
        same._plan = replace(self._plan, name=name, counters=counters)
        return same

    @property
    def has_any(self) -> bool:
        """True if there is a target, cache or default, or `exhausted`, which converts the error."""
        plan = self._plan
        stands_in = plan.targets or plan.cache is not None or plan.make_default is not None
        return bool(stands_in) or plan.exhausted is not None

    @property
    def cache(self) -> Cache | None:
        """The cache of good answers, None without one."""
        return self._plan.cache

    def followed_by(self, other: "Fallback") -> "Fallback":
        """Return a new fallback that tries the targets of this one, then those of `other`.

        Each target applies to the errors that its own fallback covers. The cache is that of `other`
        if it has one, and a good answer is one that both fallbacks accept.
        """
        same = copy.copy(self)
        same._plan = chain_plans(self._plan, other._plan)
        return same

    def catching(self, default: Any = MISSING) -> "FallbackBlock":
        """Return a context manager that supplies a default if its block fails.

        After `with fallback.catching(default) as block: block.value = …`, `block.value` is the
        value set in the block, or the default if the block failed. Targets and caches are not used.
        """
        return FallbackBlock(
            self._plan, make_default_factory(default, None) or self._plan.make_default
        )

    def count_answers(self) -> dict[str, int]:
        """Return the number of calls answered by each target (by name), "cache" and "default"."""
        return self._plan.answer_counts.counted()

    def around_plain(
        self, function: Callable[..., Any], original: Callable[..., Any], guard: Guard | None
    ) -> Callable[..., Any]:
        """Like :meth:`around`, for a plain function."""
        self._plan.check_plain("a coroutine function")
        calls, is_simple = FallbackCalls(self._plan, original, guard), self._plan.is_simple

        def call(*args: Any, **kwargs: Any) -> Any:
            before = partial_count()
            try:
                value = function(*args, **kwargs)
                if type(value) is CoroutineType:
                    refuse_coroutine(value)
            except Exception as error:
                steps = calls.on_error(args, kwargs, error)
            else:
                is_partial = partial_count() != before
                if is_simple and not is_partial:
                    record_value(value)
                    return value
                steps = calls.on_result(args, kwargs, value, is_partial)
            return raise_or_return(drive(steps)).value

        return call

    def _stream(
        self, function: Callable[..., Any], original: Callable[..., Any], guard: Guard | None
    ) -> Callable[..., Any]:
        is_async = is_async_generator_function(function)
        self._plan.check_streamable()
        if not is_async:
            self._plan.check_plain("an asynchronous generator")
        calls = FallbackCalls(self._plan, original, guard, is_async=is_async, is_stream=True)
        open_ = make_opener(function)

        def begin(label: StreamLabel, args: Any, kwargs: Any) -> Any:
            try:
                return open_(*args, **kwargs)
            except Exception as error:
                steps = calls.on_error(args, kwargs, error)
            return label.unwrap(raise_or_return(drive(steps)))

        async def abegin(label: StreamLabel, args: Any, kwargs: Any) -> Any:
            try:
                return await open_(*args, **kwargs)
            except Exception as error:
                steps = calls.on_error(args, kwargs, error)
            return label.unwrap(raise_or_return(await drive_async(steps)))

        def make(*args: Any, **kwargs: Any) -> PrefetchedStream | AsyncPrefetchedStream:
            label = StreamLabel()
            if is_async:
                return AsyncPrefetchedStream(partial(abegin, label, args, kwargs), label)
            return PrefetchedStream(partial(begin, label, args, kwargs), label)

        return make_stream_function(function, make)

    def around_coroutine(
        self, function: Callable[..., Any], original: Callable[..., Any], guard: Guard | None
    ) -> Callable[..., Any]:
        """Like :meth:`around`, for a coroutine function."""
        calls = FallbackCalls(self._plan, original, guard, is_async=True)
        is_simple = self._plan.is_simple

        async def call(*args: Any, **kwargs: Any) -> Any:
            before = partial_count()
            try:
                value = await function(*args, **kwargs)
            except Exception as error:
                steps = calls.on_error(args, kwargs, error)
            else:
                is_partial = partial_count() != before
                if is_simple and not is_partial:
                    record_value(value)
                    return value
                steps = calls.on_result(args, kwargs, value, is_partial)
            return raise_or_return(await drive_async(steps)).value

        return call
