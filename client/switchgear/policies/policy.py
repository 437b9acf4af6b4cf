"""A policy: all patterns around the calls of one dependency, from fallback to timeout."""

import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, Unpack

from switchgear.decorators import F, is_async_generator_function, wrap_by_kind
from switchgear.generator_steps import wrap_steps
from switchgear.guards import Guard
from switchgear.journal import log
from switchgear.patterns import forks
from switchgear.patterns.admission import validate_priority
from switchgear.patterns.answers import Answer, require_latest_answer
from switchgear.patterns.breaker import Breaker
from switchgear.patterns.bulkhead import Bulkhead
from switchgear.patterns.counters import Counters
from switchgear.patterns.deadline import Deadline
from switchgear.patterns.fallback import Fallback
from switchgear.patterns.hedging import Hedge
from switchgear.patterns.parameters import HttpTimeouts
from switchgear.patterns.retry import Attempt, Retry
from switchgear.patterns.timeout import Timeout
from switchgear.policies.arguments import Arguments, check_policy
from switchgear.policies.dependency import Dependency
from switchgear.policies.documents import DependencyConfig
from switchgear.policies.entered_blocks import (
    EnteredBlocks,
    PolicyAttempt,
    block_managers,
    enter_outer_managers,
)
from switchgear.policies.layers import (
    AdmissionArguments,
    FallbackSelector,
    Layers,
    await_function,
    call_function,
)

if TYPE_CHECKING:
    from switchgear.llm.spend_budget import SpendBudget

P = ParamSpec("P")
T = TypeVar("T")


class Policy:
    """All patterns around the calls of a dependency, each if the console or the code configures it.

    The order is fallback › kill switch › deadline › retry › hedge › breaker › bulkhead › timeout.
    `gear.policy("core->oracle")` follows the console, and its changes apply to the next call.
    `Policy(...)` uses its `arguments` alone (see :class:`Arguments`). All policies of a client with
    the same name share breaker, bulkhead, counters and retry budget.

        oracle = gear.policy("core->oracle", timeout_seconds=2, retry=RetryParameters(attempts=3))

        @oracle
        def ask(question: str) -> str: ...

    As a decorator it suits functions, coroutine functions and methods, and keeps their signature;
    generators too, with retry and fallback until their first item. `with policy:` and `async with
    policy:` apply everything but retry and fallback, and must not be used inside a generator (see
    `Timeout`). `for attempt in policy:` with `with attempt:` inside (`async for`, `async with`)
    applies all but the fallback. In a plain function the timeouts are cooperative: see `Timeout`.
    """

    def __init__(
        self,
        name: str = "unnamed",
        *,
        guard: Guard | None = None,
        dependency: Dependency | None = None,
        owner: object = None,
        **arguments: Unpack[Arguments],
    ) -> None:
        self.name = name = check_policy(name, arguments)
        self._owner = owner  # A client that is garbage-collected stops following its console.
        self._arguments = arguments
        self._dependency = dependency = dependency or Dependency(name)
        self.breaker: Breaker = dependency.get_breaker(
            parameters=arguments.get("breaker"),
            ignore=arguments.get("ignore") or (),
            is_failure=arguments.get("is_failure"),
            is_failed_result=arguments.get("is_failed_result"),
        )
        self.guard = None if guard is None else guard.with_others(self.breaker)
        """The kill switch around the calls; None without one."""
        self.counters: Counters = dependency.counters
        """The counters of all calls of this name."""
        self.http: HttpTimeouts | None = arguments.get("http")
        """The timeouts of the parts of an HTTP call, as given by the code."""
        self._bulkhead = dependency.get_bulkhead(arguments.get("bulkhead"))
        self._admission = AdmissionArguments(
            arguments.get("key"), validate_priority(arguments.get("priority"))
        )
        self._retry = Retry(
            name,
            arguments.get("retry"),
            retry_on=arguments.get("retry_on"),
            never=arguments.get("never"),
            retry_result=arguments.get("retry_result"),
            truncate=arguments.get("truncate"),
            budget=dependency.get_retry_budget(arguments.get("retry")),
            counters=dependency.counters,
            clock=dependency.clock,
            sleep=dependency.sleep,
        )
        self._retry.sources = (self.breaker,)
        self._hedge: Hedge | None = None
        if (seconds := arguments.get("hedge_after_seconds")) is not None:
            budget = self._retry.budget
            self._hedge = Hedge(name, seconds, budget=budget, counters=dependency.counters)
        clock = dependency.clock
        self._deadline = Deadline(arguments.get("deadline_seconds"), cuts=False, clock=clock)
        self._timeout = Timeout(arguments.get("timeout_seconds"), clock=clock)
        if arguments.get("budget") is not None:
            dependency.get_token_budget(arguments["budget"])
        self._fallbacks = FallbackSelector(
            name,
            dependency.counters,
            arguments.get("fallback"),
            arguments.get("providers"),
            *(bool(arguments.get("on_switch")), arguments.get("cache")),
        )
        self._blocks = EnteredBlocks()
        self._lock = threading.RLock()
        self._layers = self._build_layers(dependency.config)
        forks.register(self)

    def __call__(self, function: F) -> F:
        """Return `function` with all patterns of this policy around it.

        A generator is one call from its first step to its end, with retry and fallback until its
        first item. Raise :class:`TypeError` for a generator if `retry_result` or the `is_good` of a
        fallback is given, since these evaluate whole answers.
        """
        return wrap_by_kind(
            function,
            plain=partial(self._wrap, Layers.wrap),
            coroutine=partial(self._wrap, Layers.wrap, is_coroutine=True),
            generator=self._wrap_generator,
            what="a policy",
        )

    def call(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `function` with all patterns around it, and return its value."""
        return self.run(function, *args, **kwargs).value

    async def acall(
        self, function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Like :meth:`call`, for a coroutine function."""
        return (await self.arun(function, *args, **kwargs)).value

    def run(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Answer[T]:
        """Like :meth:`call`, but return an `Answer`: the value and its label."""
        layers = self._current_layers()
        inner = self._wrap_once(layers, function, call_function)
        if layers.fallback is None:
            return Answer(inner(*args, **kwargs))
        layers.fallback.around_plain(inner, function, layers.guard)(*args, **kwargs)
        return require_latest_answer()

    async def arun(
        self, function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Answer[T]:
        """Like :meth:`run`, for a coroutine function."""
        layers = self._current_layers()
        inner = self._wrap_once(layers, function, await_function)
        if layers.fallback is None:
            return Answer(await inner(*args, **kwargs))
        await layers.fallback.around_coroutine(inner, function, layers.guard)(*args, **kwargs)
        return require_latest_answer()

    def __enter__(self) -> Self:
        self._blocks.enter(block_managers(self._current_layers(), self._admission))
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        self._blocks.leave(error, traceback)

    async def __aenter__(self) -> Self:
        await self._blocks.aenter(block_managers(self._current_layers(), self._admission))
        return self

    async def __aexit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        await self._blocks.aleave(error, traceback)

    def __iter__(self) -> Iterator[PolicyAttempt]:
        layers = self._current_layers()
        with enter_outer_managers(layers) as outer:
            for attempt in (Attempt(None),) if layers.retry is None else layers.retry:
                yield PolicyAttempt(attempt, layers, self._admission, outer)

    async def __aiter__(self) -> AsyncIterator[PolicyAttempt]:
        layers = self._current_layers()
        with enter_outer_managers(layers) as outer:
            if layers.retry is None:
                yield PolicyAttempt(Attempt(None), layers, self._admission, outer)
                return
            async for attempt in layers.retry:
                yield PolicyAttempt(attempt, layers, self._admission, outer)

    def __repr__(self) -> str:
        return f"<Policy {self.name}>"

    @property
    def timeout_seconds(self) -> float | None:
        """The current timeout of one attempt in seconds; None without one."""
        return self._timeout_for(self._dependency.config)

    @property
    def retry(self) -> Retry | None:
        """The current retry; None if calls are not retried."""
        return self._current_layers().retry

    @property
    def bulkhead(self) -> Bulkhead | None:
        """The current bulkhead; None without a limit."""
        return self._current_layers().bulkhead

    @property
    def fallback(self) -> Fallback | None:
        """The current fallback; None without one."""
        return self._current_layers().fallback

    @property
    def arguments(self) -> Mapping[str, object]:
        """The arguments given by the code, without the console's settings."""
        return MappingProxyType(dict(self._arguments))

    @property
    def deadline(self) -> Deadline | None:
        """The deadline of the whole call with all its attempts; None without one."""
        return self._current_layers().deadline

    @property
    def budget(self) -> "SpendBudget":
        """The token budget that all policies of this name share, in which calls reserve tokens."""
        return self._dependency.get_token_budget(self._arguments.get("budget"))

    def route_timeout(self, path: str) -> float | None:
        """Return the timeout of one attempt of a request to `path`, in seconds; None without one.

        It is that of the console's first matching route, otherwise the policy's.
        """
        by_route = self._dependency.config.route_timeout(path)
        return self.timeout_seconds if by_route is None else by_route

    def after_fork(self) -> None:
        self._lock = threading.RLock()

    def _current_layers(self) -> Layers:
        """Return the patterns for the configuration in force, rebuilt if it changed."""
        config, layers = self._dependency.config, self._layers
        if layers.config is config:
            return layers
        with self._lock:
            if self._layers.config is not self._dependency.config:
                self._layers = self._build_layers(self._dependency.config)
            return self._layers

    def _build_layers(self, config: DependencyConfig) -> Layers:
        """Return the patterns for `config`, configured in place, which keeps their counts."""
        retry = config.retry or self._arguments.get("retry")
        if retry is not None:
            self._retry.configure(retry)
        timeout = self._timeout_for(config)
        self._timeout.configure(timeout)
        return Layers(
            config=config,
            fallback=self._fallbacks.select(config.fallback),
            guard=self.guard,
            deadline=None if self._deadline.seconds is None else self._deadline,
            retry=None if retry is None else self._retry,
            breaker=self.breaker,
            bulkhead=None if self._bulkhead.parameters is None else self._bulkhead,
            timeout=None if timeout is None else self._timeout,
            hedge=self._hedge,
        )

    def _timeout_for(self, config: DependencyConfig) -> float | None:
        if config.timeout_seconds is not None:
            return config.timeout_seconds
        return self._arguments.get("timeout_seconds")

    def _wrap_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if self._arguments.get("hedge_after_seconds") is not None:
            raise TypeError("a generator can't be hedged: use a policy without hedging")
        if self._arguments.get("retry_result") is not None:
            raise TypeError(
                "retry_result checks complete results and can't be used with a generator"
            )
        wrapped = self._wrap(Layers.wrap_generator, function)
        is_async = is_async_generator_function(function)
        return wrap_steps(wrapped, lambda args, kwargs: nullcontext(), is_async=is_async)

    def _wrap(
        self,
        wrap: Callable[[Layers, Callable[..., Any], AdmissionArguments], Callable[..., Any]],
        function: Callable[..., Any],
        *,
        is_coroutine: bool = False,
    ) -> Callable[..., Any]:
        """Return `function` with all patterns around it; a new configuration wraps it again."""
        dependency, admission = self._dependency, self._admission
        layers = self._current_layers()
        # One tuple, assigned at once: two threads may rebuild, and either result is consistent.
        current = layers.config, wrap(layers, function, admission)

        def rebuild() -> None:
            nonlocal current
            layers, built = self._current_layers(), current[1]
            try:
                built = wrap(layers, function, admission)
            except TypeError as error:  # The console may configure unsuitable targets.
                log.warning("switchgear: policy %s is unchanged: %s", self.name, error)
            current = layers.config, built

        def plain(*args: Any, **kwargs: Any) -> Any:
            if dependency.config is not current[0]:
                rebuild()
            return current[1](*args, **kwargs)

        async def coroutine(*args: Any, **kwargs: Any) -> Any:
            if dependency.config is not current[0]:
                rebuild()
            return await current[1](*args, **kwargs)

        return coroutine if is_coroutine else plain

    def _wrap_once(
        self, layers: Layers, function: Callable[..., Any], through: Callable[..., Any]
    ) -> Callable[..., Any]:
        """Return `function` with all patterns but the fallback around it, for a single call.

        If possible, `function` is called by `through` (`call_function` or `await_function`), which
        is wrapped only once for all functions.
        """
        if (
            self._admission.depends_on_call
            or self._retry.truncate
            or (self.guard and self.guard.depends_on_call)
        ):
            return layers.wrap(function, self._admission, with_fallback=False)
        return partial(layers.wrap_caller(through, self._admission), function)
