"""All patterns around the calls of one dependency, in their order."""

import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from functools import partial
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, Unpack

from switchgear.guards import Guard
from switchgear.patterns import forks
from switchgear.patterns.answers import Answer
from switchgear.patterns.breaker import Breaker
from switchgear.patterns.bulkhead import Bulkhead
from switchgear.patterns.call_priority import validate_priority
from switchgear.patterns.counters import Counters
from switchgear.patterns.deadline import Deadline
from switchgear.patterns.fallback import Fallback
from switchgear.patterns.hedging import make_hedge
from switchgear.patterns.parameters import HttpTimeouts
from switchgear.patterns.retry import Retry
from switchgear.patterns.timeout import Timeout
from switchgear.policies.answering import Answering
from switchgear.policies.arguments import Arguments
from switchgear.policies.attempt import PolicyAttempt
from switchgear.policies.blocks import Blocks, around_block, around_tries
from switchgear.policies.checks import checked_policy
from switchgear.policies.dependency import Dependency
from switchgear.policies.documents import Said
from switchgear.policies.layers import Layers, Sought, awaited, called
from switchgear.policies.streaming import Streaming
from switchgear.wrapping import by_kind

if TYPE_CHECKING:
    from switchgear.llm.spend_budget import SpendBudget

log = logging.getLogger("switchgear")

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
T = TypeVar("T")


class Policy:
    """fallback › kill switch › deadline › retry › hedge › breaker › bulkhead › timeout, each as far
    as the console or the code says something of it.

    `gear.policy("core->oracle")` follows the console: whoever holds one sees a change at its next
    call. `Policy(...)` goes by its `arguments` alone (see :class:`Arguments`). All policies of a
    client that have the same name share breaker, bulkhead, counters and budget for retries.

    As a decorator it suits functions, coroutine functions and methods, and keeps their signature;
    generators too, with retry and fallback until their first item. `with policy:` and `async with
    policy:` apply everything but retry and fallback, and must not be used inside a generator (see
    `Timeout`). `for attempt in policy:` with `with attempt:` inside (`async for`, `async with`) is
    all but the fallback. In a plain function the timeouts are cooperative: see `Timeout`.
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
        self.name = name = checked_policy(name, arguments)
        self._owner = owner  # A client that nobody holds follows no more.
        self._arguments = arguments
        self._dependency = dependency = dependency or Dependency(name)
        self.breaker: Breaker = dependency.breaker_of(
            parameters=arguments.get("breaker"),
            ignore=arguments.get("ignore") or (),
            is_failure=arguments.get("is_failure"),
            is_failed_result=arguments.get("is_failed_result"),
        )
        self._guard = None if guard is None else guard.with_others(self.breaker)
        self._bulkhead = dependency.bulkhead_of(arguments.get("bulkhead"))
        self._sought = Sought(arguments.get("key"), validate_priority(arguments.get("priority")))
        self._retry = Retry(
            name,
            arguments.get("retry"),
            retry_on=arguments.get("retry_on"),
            never=arguments.get("never"),
            retry_result=arguments.get("retry_result"),
            truncate=arguments.get("truncate"),
            budget=dependency.budget_of(arguments.get("retry")),
            counters=dependency.counters,
            clock=dependency.clock,
            sleep=dependency.sleep,
        )
        self._retry.sources = (self.breaker,)
        self._hedge = make_hedge(name, arguments, self._retry.budget, dependency.counters)
        clock = dependency.clock
        self._deadline = Deadline(arguments.get("deadline_seconds"), cuts=False, clock=clock)
        self._timeout = Timeout(arguments.get("timeout_seconds"), clock=clock)
        if arguments.get("budget") is not None:
            dependency.spend_of(arguments["budget"])
        self._answering = Answering(
            name,
            dependency.counters,
            arguments.get("fallback"),
            arguments.get("providers"),
            *(bool(arguments.get("on_switch")), arguments.get("cache")),
        )
        self._blocks = Blocks()
        self._lock = threading.RLock()
        self._layers = self._composed(dependency.said)
        forks.register(self)

    def __call__(self, function: F) -> F:
        """Return `function` with all patterns around it. A generator is one call from its first
        step to its end, with retry and fallback until its first item; `retry_result` and the
        `is_good` of a fallback, which judge whole answers, raise :class:`TypeError` for it."""
        return by_kind(
            function,
            plain=lambda inner: self._stacked(inner, is_coroutine=False),
            coroutine=lambda inner: self._stacked(inner, is_coroutine=True),
            generator=Streaming(self.name, self._arguments, self._sought, self._now),
            stream=None,
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
        layers = self._now()
        if layers.fallback is None:
            return Answer(self._one(layers, function, called)(*args, **kwargs))
        inner = self._one(layers, function, called)
        return layers.fallback.run_for(function, inner, layers.guard, *args, **kwargs)

    async def arun(
        self, function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Answer[T]:
        """As :meth:`run`, for a coroutine function."""
        layers = self._now()
        if layers.fallback is None:
            return Answer(await self._one(layers, function, awaited)(*args, **kwargs))
        inner = self._one(layers, function, awaited)
        return await layers.fallback.arun_for(function, inner, layers.guard, *args, **kwargs)

    def __enter__(self) -> Self:
        self._blocks.enter(around_block(self._now(), self._sought))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._blocks.leave(error, traceback)

    async def __aenter__(self) -> Self:
        await self._blocks.aenter(around_block(self._now(), self._sought))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._blocks.aleave(error, traceback)

    def __iter__(self) -> Iterator[PolicyAttempt]:
        layers = self._now()
        with around_tries(layers) as outer:
            if layers.retry is None:
                yield PolicyAttempt(None, layers, self._sought, outer)
                return
            for attempt in layers.retry:
                yield PolicyAttempt(attempt, layers, self._sought, outer)

    async def __aiter__(self) -> AsyncIterator[PolicyAttempt]:
        layers = self._now()
        with around_tries(layers) as outer:
            if layers.retry is None:
                yield PolicyAttempt(None, layers, self._sought, outer)
                return
            async for attempt in layers.retry:
                yield PolicyAttempt(attempt, layers, self._sought, outer)

    def __repr__(self) -> str:
        return f"<Policy {self.name}>"

    @property
    def timeout_seconds(self) -> float | None:
        """Of one try now."""
        return self._seconds(self._dependency.said)

    @property
    def http(self) -> HttpTimeouts | None:
        """Of the parts of an HTTP call, as the code says."""
        return self._arguments.get("http")

    @property
    def retry(self) -> Retry | None:
        """What tries again now; None if nothing does."""
        return self._now().retry

    @property
    def bulkhead(self) -> Bulkhead | None:
        """Of the calls at once now; None without a limit."""
        return self._now().bulkhead

    @property
    def fallback(self) -> Fallback | None:
        """What answers now for a call that fails."""
        return self._now().fallback

    @property
    def arguments(self) -> Mapping[str, object]:
        """What the code has said; what it has not is left out."""
        return MappingProxyType(dict(self._arguments))

    @property
    def deadline(self) -> Deadline | None:
        """Of the whole call with all its tries."""
        return self._now().deadline

    @property
    def guard(self) -> Guard | None:
        """The kill switch around it."""
        return self._guard

    @property
    def budget(self) -> "SpendBudget":
        """The token budget of this name, in which calls reserve tokens."""
        return self._dependency.spend_of(self._arguments.get("budget"))

    @property
    def counters(self) -> Counters:
        """Of all calls of this name."""
        return self._dependency.counters

    def route_timeout(self, path: str) -> float | None:
        """Seconds for one try of this path: by the console's routes, else as of every other."""
        by_route = self._dependency.said.route_timeout(path)
        return self.timeout_seconds if by_route is None else by_route

    def after_fork(self) -> None:
        """In a child: the lock may be held by a thread that is not there."""
        self._lock = threading.RLock()

    def _now(self) -> Layers:
        """The layers by what the console says at this moment."""
        said, layers = self._dependency.said, self._layers
        if layers.said is said:
            return layers
        with self._lock:
            if self._layers.said is not self._dependency.said:
                self._layers = self._composed(self._dependency.said)
            return self._layers

    def _composed(self, said: Said) -> Layers:
        """What is there already is configured in place, and keeps what it counted."""
        retry = said.retry or self._arguments.get("retry")
        if retry is not None:
            self._retry.configure(retry)
        timeout = self._seconds(said)
        self._timeout.configure(timeout)
        return Layers(
            said=said,
            fallback=self._answering.now(said.fallback),
            guard=self._guard,
            deadline=None if self._deadline.seconds is None else self._deadline,
            retry=None if retry is None else self._retry,
            breaker=self.breaker,
            bulkhead=None if self._bulkhead.parameters is None else self._bulkhead,
            timeout=None if timeout is None else self._timeout,
            hedge=self._hedge,
        )

    def _seconds(self, said: Said) -> float | None:
        if said.timeout_seconds is not None:
            return said.timeout_seconds
        return self._arguments.get("timeout_seconds")

    def _stacked(self, function: Callable[..., Any], *, is_coroutine: bool) -> Callable[..., Any]:
        """Looks at each call, in a moment, whether the layers are still the same."""
        dependency, sought = self._dependency, self._sought
        layers = self._now()
        said, built = layers.said, layers.stacked(function, sought)

        def rebuild() -> None:
            nonlocal said, built
            # In this order: another thread may look between the two.
            layers = self._now()
            try:
                built = layers.stacked(function, sought)
            except TypeError as error:  # A chain of the console may name what suits it not.
                log.warning("switchgear: policy %s stays as it was: %s", self.name, error)
            said = layers.said

        def plain(*args: Any, **kwargs: Any) -> Any:
            if dependency.said is not said:
                rebuild()
            return built(*args, **kwargs)

        async def coroutine(*args: Any, **kwargs: Any) -> Any:
            if dependency.said is not said:
                rebuild()
            return await built(*args, **kwargs)

        return coroutine if is_coroutine else plain

    def _one(
        self, layers: Layers, function: Callable[..., Any], through: Callable[..., Any]
    ) -> Callable[..., Any]:
        """For one call, all but the fallback. Where nothing looks at the arguments, the same stack
        serves for every function."""
        if self._sought.is_found or self._retry.truncate or (self._guard and self._guard.finds):
            return layers.stacked(function, self._sought, with_fallback=False)
        return partial(layers.through(through, self._sought), function)
