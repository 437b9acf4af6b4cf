"""The layers of a policy, as what is known now has them."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from switchgear.finding import finder
from switchgear.guards import Guard
from switchgear.patterns.breaker import Breaker
from switchgear.patterns.bulkhead import Bulkhead
from switchgear.patterns.deadline import Deadline
from switchgear.patterns.fallback import Fallback
from switchgear.patterns.hedging import Hedge
from switchgear.patterns.retry import Retry
from switchgear.patterns.streams import apply_until_first_item
from switchgear.patterns.timeout import Timeout
from switchgear.policies.documents import Said
from switchgear.wrapping import by_kind

T = TypeVar("T")

OUTER_ONLY = Timeout(None)
"""For a try without a limit of its own. A deadline around it must end the try in here: to a breaker
that sees a cancellation, the call says nothing."""


@dataclass(frozen=True)
class Sought:
    """Whose place it is in the bulkhead, and how urgent: values, or what finds them in the
    arguments of a call."""

    key: Any
    priority: Any

    @property
    def is_found(self) -> bool:
        return callable(self.key) or callable(self.priority)

    @property
    def is_plain(self) -> bool:
        return self.key is None and self.priority == 0

    def place(self, bulkhead: Bulkhead) -> Any:
        """For a block, which has no arguments to look at: with the values alone."""
        key = None if callable(self.key) else self.key
        return bulkhead.of(key, 0 if callable(self.priority) else self.priority)

    def around(self, bulkhead: Bulkhead, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function`, with a place for each of its calls."""
        if self.is_plain:
            return bulkhead(function)
        find_key, find_priority = _found(self.key, function), _found(self.priority, function)

        def plain(inner: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **kwargs: Any) -> Any:
                with bulkhead.of(find_key(args, kwargs), find_priority(args, kwargs)) as place:
                    return place.record_outcome(inner(*args, **kwargs))

            return call

        def coroutine(inner: Callable[..., Any]) -> Callable[..., Any]:
            async def call(*args: Any, **kwargs: Any) -> Any:
                place = bulkhead.of(find_key(args, kwargs), find_priority(args, kwargs))
                async with place:
                    return place.record_outcome(await inner(*args, **kwargs))

            return call

        def stream(args: Any, kwargs: Mapping[str, Any]) -> Any:
            return bulkhead.of_stream(find_key(args, kwargs), find_priority(args, kwargs))

        return by_kind(function, plain=plain, coroutine=coroutine, stream=stream, what="a bulkhead")


@dataclass(frozen=True)
class Layers:
    """Outside in; None for one that is off. `said` is what they follow from."""

    said: Said
    fallback: Fallback | None
    guard: Guard | None
    deadline: Deadline | None
    retry: Retry | None
    breaker: Breaker
    bulkhead: Bulkhead | None
    timeout: Timeout | None
    hedge: Hedge | None = None
    _through: dict[Callable[..., Any], Callable[..., Any]] = field(
        default_factory=dict, compare=False
    )

    def stacked(
        self, function: Callable[..., Any], sought: Sought, *, with_fallback: bool = True
    ) -> Callable[..., Any]:
        """Return `function` with all layers around it."""
        fallback = self.fallback if with_fallback else None
        return self._stacked(function, sought, (self.hedge, self.retry), fallback)

    def streamed(self, function: Callable[..., Any], sought: Sought) -> Callable[..., Any]:
        """Return a generator function with all layers around it; retry and fallback apply until its
        first item."""
        retry = (
            None if self.retry is None else partial(apply_until_first_item, decorator=self.retry)
        )
        return self._stacked(function, sought, (retry,), self.fallback)

    def _stacked(
        self,
        function: Callable[..., Any],
        sought: Sought,
        again: tuple[Callable[..., Any] | None, ...],
        fallback: Fallback | None,
    ) -> Callable[..., Any]:
        original, function = function, (self.timeout or OUTER_ONLY)(function)
        if self.bulkhead is not None:
            function = sought.around(self.bulkhead, function)
        function = self.breaker(function)
        for layer in (*again, self.deadline, self.guard):
            if layer is not None:
                function = layer(function)
        if fallback is not None:
            function = fallback.around(function, original, self.guard)
        return function

    def through(self, caller: Callable[..., Any], sought: Sought) -> Callable[..., Any]:
        """The same around what calls whatever it is given, made once."""
        found = self._through.get(caller)
        if found is None:
            found = self._through[caller] = self.stacked(caller, sought, with_fallback=False)
        return found


def called(function: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    """Stands for every function in a stack that doesn't look at the arguments."""
    return function(*args, **kwargs)


async def awaited(function: Callable[..., Awaitable[T]], /, *args: Any, **kwargs: Any) -> T:
    """And for every coroutine function."""
    return await function(*args, **kwargs)


def _found(given: Any, function: Callable[..., Any]) -> Callable[[Any, Mapping[str, Any]], Any]:
    return finder(given, function) if callable(given) else lambda _args, _kwargs: given
