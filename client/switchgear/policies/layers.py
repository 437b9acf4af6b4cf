"""The layers of a policy under one configuration."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from switchgear.argument_finders import make_finder
from switchgear.decorators import is_async_generator_function, wrap_by_kind, wrap_generator
from switchgear.generator_steps import wrap_steps
from switchgear.guards import Guard
from switchgear.patterns.breaker import Breaker
from switchgear.patterns.bulkhead import Bulkhead
from switchgear.patterns.deadline import Deadline
from switchgear.patterns.fallback import Fallback
from switchgear.patterns.hedging import Hedge
from switchgear.patterns.retry import Retry
from switchgear.patterns.streams import apply_until_first_item
from switchgear.patterns.timeout import Timeout
from switchgear.policies.arguments import Arguments
from switchgear.policies.documents import DependencyConfig

T = TypeVar("T")
log = logging.getLogger("switchgear")

OUTER_ONLY = Timeout(None)
"""The limit of an attempt without its own timeout: the deadline around it ends the attempt with an
error, since a breaker would not count a mere cancellation."""


@dataclass(frozen=True)
class AdmissionArguments:
    """The key and priority in the bulkhead: values, or functions of a call's arguments."""

    key: Any
    priority: Any

    @property
    def depends_on_call(self) -> bool:
        return callable(self.key) or callable(self.priority)

    @property
    def is_default(self) -> bool:
        return self.key is None and self.priority == 0

    def block_manager(self, bulkhead: Bulkhead) -> Any:
        """Return the permit of a block. A block has no arguments, so functions are not called."""
        key = None if callable(self.key) else self.key
        return bulkhead.of(key, 0 if callable(self.priority) else self.priority)

    def wrap(self, bulkhead: Bulkhead, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return `function` with a permit of the bulkhead for each of its calls."""
        if self.is_default:
            return bulkhead(function)
        find_key, find_priority = (
            _make_finder(self.key, function),
            _make_finder(self.priority, function),
        )

        def plain(inner: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **kwargs: Any) -> Any:
                with bulkhead.of(find_key(args, kwargs), find_priority(args, kwargs)) as permit:
                    return permit.record_outcome(inner(*args, **kwargs))

            return call

        def coroutine(inner: Callable[..., Any]) -> Callable[..., Any]:
            async def call(*args: Any, **kwargs: Any) -> Any:
                permit = bulkhead.of(find_key(args, kwargs), find_priority(args, kwargs))
                async with permit:
                    return permit.record_outcome(await inner(*args, **kwargs))

            return call

        def stream(args: Any, kwargs: Mapping[str, Any]) -> Any:
            return bulkhead.of_stream(find_key(args, kwargs), find_priority(args, kwargs))

        return wrap_by_kind(
            function,
            plain=plain,
            coroutine=coroutine,
            generator=partial(wrap_generator, stream),
            what="a bulkhead",
        )


@dataclass(frozen=True)
class Layers:
    """The layers of a policy for `config`, outermost first; None for a layer that is off."""

    config: DependencyConfig
    fallback: Fallback | None
    guard: Guard | None
    deadline: Deadline | None
    retry: Retry | None
    breaker: Breaker
    bulkhead: Bulkhead | None
    timeout: Timeout | None
    hedge: Hedge | None = None
    _wrapped_callers: dict[Callable[..., Any], Callable[..., Any]] = field(
        default_factory=dict, compare=False
    )

    def wrap(
        self,
        function: Callable[..., Any],
        admission: AdmissionArguments,
        *,
        with_fallback: bool = True,
    ) -> Callable[..., Any]:
        """Return `function` with all layers, or all but the fallback."""
        fallback = self.fallback if with_fallback else None
        return self._wrap(function, admission, (self.hedge, self.retry), fallback)

    def wrap_generator(
        self, function: Callable[..., Any], admission: AdmissionArguments
    ) -> Callable[..., Any]:
        """Return a generator function with all layers; retry and fallback until its first item."""
        retry = (
            None if self.retry is None else partial(apply_until_first_item, decorator=self.retry)
        )
        return self._wrap(function, admission, (retry,), self.fallback)

    def _wrap(
        self,
        function: Callable[..., Any],
        admission: AdmissionArguments,
        repeaters: tuple[Callable[..., Any] | None, ...],
        fallback: Fallback | None,
    ) -> Callable[..., Any]:
        original, function = function, (self.timeout or OUTER_ONLY)(function)
        if self.bulkhead is not None:
            function = admission.wrap(self.bulkhead, function)
        function = self.breaker(function)
        for layer in (*repeaters, self.deadline, self.guard):
            if layer is not None:
                function = layer(function)
        if fallback is not None:
            function = fallback.around(function, original, self.guard)
        return function

    def wrap_caller(
        self, caller: Callable[..., Any], admission: AdmissionArguments
    ) -> Callable[..., Any]:
        """Return `caller`, which calls its first argument, with all layers but the fallback."""
        found = self._wrapped_callers.get(caller)
        if found is None:
            found = self._wrapped_callers[caller] = self.wrap(
                caller, admission, with_fallback=False
            )
        return found


def call_function(function: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    """Call `function`. Wrapped in a policy's layers once, it applies them to any function."""
    return function(*args, **kwargs)


async def await_function(function: Callable[..., Awaitable[T]], /, *args: Any, **kwargs: Any) -> T:
    """Await a coroutine function, like :func:`call_function`."""
    return await function(*args, **kwargs)


def _make_finder(
    given: Any, function: Callable[..., Any]
) -> Callable[[Any, Mapping[str, Any]], Any]:
    return make_finder(given, function) if callable(given) else lambda _args, _kwargs: given


class GeneratorPolicy:
    """A decorator of generator functions for the policy `name`."""

    def __init__(
        self,
        name: str,
        arguments: Arguments,
        admission: AdmissionArguments,
        now: Callable[[], Layers],
    ) -> None:
        self._name = name
        self._arguments = arguments
        self._admission = admission
        self._current_layers = now

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the wrapped function. Raise :class:`TypeError` for arguments unfit for streams."""
        if self._arguments.get("hedge_after_seconds") is not None:
            raise TypeError("a generator can't be hedged: use another policy for it")
        if self._arguments.get("retry_result") is not None:
            raise TypeError("retry_result judges whole answers and can't be used with a generator")
        layers = self._current_layers()
        current = layers, layers.wrap_generator(function, self._admission)

        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal current
            layers, (built_for, built) = self._current_layers(), current
            if built_for is not layers:
                try:
                    built = layers.wrap_generator(function, self._admission)
                except TypeError as error:  # A chain from the console may name unsuitable targets.
                    log.warning("switchgear: policy %s stays as it was: %s", self._name, error)
                current = layers, built
            return built(*args, **kwargs)

        is_async = is_async_generator_function(function)
        return wrap_steps(call, lambda args, kwargs: nullcontext(), is_async=is_async)
