"""The layers of a policy, one for each of its patterns, under one configuration."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from switchgear.guards import Guard
from switchgear.patterns.breaker import Breaker
from switchgear.patterns.bulkhead import Bulkhead
from switchgear.patterns.caches import Cache
from switchgear.patterns.counters import Counters
from switchgear.patterns.deadline import Deadline
from switchgear.patterns.fallback import Fallback
from switchgear.patterns.hedging import Hedge
from switchgear.patterns.retry import Retry
from switchgear.patterns.streams import apply_until_first_item
from switchgear.patterns.timeout import Timeout
from switchgear.policies.documents import DependencyConfig

T = TypeVar("T")

OUTER_ONLY = Timeout(None)
"""The timeout of attempts without their own: it turns the cancellation by an outer deadline into an
error, which a breaker counts."""


MODE_NONE = "none"
"""The console's mode that switches fallbacks off."""


@dataclass(frozen=True)
class AdmissionArguments:
    """The key and priority of calls in the bulkhead: values, or functions of a call's arguments."""

    key: Any
    priority: Any

    @property
    def depends_on_call(self) -> bool:
        return callable(self.key) or callable(self.priority)

    def block_manager(self, bulkhead: Bulkhead) -> Any:
        """Return a context manager that holds a permit for a block.

        A key or priority that is a function is ignored, since a block has no arguments.
        """
        key = None if callable(self.key) else self.key
        return bulkhead.of(key, 0 if callable(self.priority) else self.priority)


@dataclass(frozen=True)
class Layers:
    """The patterns of a policy under one configuration, outermost first; None for an unused one."""

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
        """Return a generator function with all layers around it.

        Retry and fallback apply until its first item.
        """
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
            function = self.bulkhead.wrap(function, admission.key, admission.priority)
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
        """Return `caller`, which calls its first argument, with all layers but the fallback.

        It is wrapped once and then reused for all functions.
        """
        found = self._wrapped_callers.get(caller)
        if found is None:
            found = self._wrapped_callers[caller] = self.wrap(
                caller, admission, with_fallback=False
            )
        return found


def call_function(function: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    """Call `function` with these arguments: a `caller` for :meth:`Layers.wrap_caller`."""
    return function(*args, **kwargs)


async def await_function(function: Callable[..., Awaitable[T]], /, *args: Any, **kwargs: Any) -> T:
    """Like :func:`call_function`, for a coroutine function."""
    return await function(*args, **kwargs)


class FallbackSelector:
    """Selects the fallback of a policy: from the code, from the console, both, or none.

    The console's `fallback.chain` applies if the code has `providers` for it; the code's fallback
    follows it and shares its cache. The console's mode `none` switches every fallback off. All
    other fields of the console's `fallback` are for display.
    """

    def __init__(
        self,
        name: str,
        counters: Counters,
        given: Fallback | Callable[..., Any] | None,
        providers: Mapping[str, Callable[..., Any]] | None,
        on_switch: bool,
        cache: Cache | None = None,
    ) -> None:
        self._name, self._counters = name, counters
        self._providers, self._on_switch = providers, on_switch
        self._code_fallback: Fallback | None = None
        if isinstance(given, Fallback):
            self._code_fallback = given.counted_as(name, counters)
        elif given is not None or cache is not None:
            targets = () if given is None else (given,)
            self._code_fallback = Fallback(
                name, *targets, cache=cache, on_switch=on_switch, counters=counters
            )
        self._document: Mapping[str, Any] | None = None
        self._chain: Fallback | None = None

    def select(self, document: Mapping[str, Any] | None) -> Fallback | None:
        """Return the fallback to use, or None. `document` is the console's `fallback` section."""
        if document is None:
            return self._code_fallback
        if document.get("mode") == MODE_NONE:
            return None
        if not self._providers or not document.get("chain"):
            return self._code_fallback
        if document != self._document:
            self._document, self._chain = document, self._make_chain(document, self._providers)
        return self._chain

    def _make_chain(
        self, document: Mapping[str, Any], providers: Mapping[str, Callable[..., Any]]
    ) -> Fallback | None:
        from switchgear.llm.providers import chain  # Needed only with providers.

        of_code = self._code_fallback
        found = chain(
            document,
            providers,
            name=self._name,
            cache=None if of_code is None else of_code.cache,
            on_switch=self._on_switch,
            counters=self._counters,
        )
        if not found.has_any:
            return of_code
        return found if of_code is None else found.followed_by(of_code)
