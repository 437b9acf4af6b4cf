"""Guards: decorators and context managers that run code only while its switches allow it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Literal, TypeVar

from switchgear.cancellation import (
    CancelSource,
    Scope,
    TaskCancellation,
    current_scope,
    enter,
    leave,
)
from switchgear.deciding.evaluate import Decision, several
from switchgear.deciding.keys import KEY_TYPES, Key, key_text
from switchgear.deciding.memory import Memory, View
from switchgear.finding import Finder, finder
from switchgear.refusals import Refused
from switchgear.stepping import stepwise
from switchgear.wrapping import by_kind, is_async_generator_function, is_coroutine_function

Keys = Key | Iterable[Key] | None | Callable[..., Key | Iterable[Key] | None]
"""A key, several, none, or what finds them in the arguments of a call."""

KeyOf = Key | None | Callable[..., object]
"""A targeting key, or what finds it in the arguments of a call."""

Unknown = Literal["allow", "block"]

OnEngage = Literal["finish", "cancel"]
"""What becomes of a call that runs when its switch is engaged."""

F = TypeVar("F", bound=Callable[..., Any])

NOTHING_KNOWN = "nothing is known of what is engaged, and this guard blocks then"
NO_KEY = "no switch can have a key of this call, and this guard blocks then"
NAMES = ("segment", "feature", "experiments", "targeting_key")


class SwitchEngaged(Refused):
    """A switch stops this call: `switch` says which one, and `reason` why.

    `switch` is None where a guard blocks because nothing is known. To try again is no use before
    somebody has released the switch. It can be pickled, and be made again from its `args`, which
    are plain values: so it comes whole out of another process, or out of Celery's results.
    """

    def __init__(
        self,
        switch: str | None,
        reason: str | None = None,
        version: int | None = None,
        known: bool = True,
    ) -> None:
        super().__init__(switch, reason, version, known)
        self.decision = Decision(False, switch, reason, version, known)

    @property
    def switch(self) -> str | None:
        return self.decision.switch

    @property
    def reason(self) -> str | None:
        return self.decision.reason

    def __str__(self) -> str:
        return f"stopped by {self.switch or 'a guard'}: {self.reason}"


class GuardedKeys:
    """The switches of one call: a :class:`CancelSource` that is asked before the call begins, and
    again before anything inside it begins.

    The first question is counted, later ones are not. Without a targeting key chance decided at the
    first: a switch that ramps refuses nothing later, one that is engaged does.
    """

    __slots__ = ("_asked", "_blocks_unknown", "_cell", "_memory", "_others", "_view", "guard")

    def __init__(
        self,
        guard: "Guard",
        memory: Memory,
        asked: tuple[Any, Any, Any, Any],
        blocks_unknown: bool,
        others: Sequence[CancelSource],
    ) -> None:
        self.guard = guard
        self._memory = memory
        self._asked = asked
        self._blocks_unknown = blocks_unknown
        self._others = others
        self._view: View | None = None
        """The view in which every call with these keys passes, counted in `_cell`."""
        self._cell: Any = None

    def ask(self) -> Decision:
        """Decide and count one call. Raise :class:`SwitchEngaged`."""
        cell = self._cell
        if self._memory.view is self._view and cell.is_kept:
            cell.tick()
            decision: Decision = cell.decision
            return decision
        view = self._memory.view
        cell = view.kept_cell(self._asked[:3])
        if cell is not None and cell.decision is not None:
            cell.tick()
            decision = cell.decision
        else:
            decision = self._memory.decide(*self._asked)
            cell = view.kept_cell(self._asked[:3])
        if (refusal := self._refused(decision)) is not None:
            raise refusal
        if cell is not None and cell.decision is decision:
            self._cell, self._view = cell, view
        return decision

    def refusal(self) -> Refused | None:
        if self._memory.view is not self._view:
            refusal = self._refused(self._memory.decide_again(*self._asked))
            if refusal is not None:
                return refusal
        for other in self._others:
            if (found := other.refusal()) is not None:
                return found
        return None

    def subscribe(self, callback: Callable[[], object]) -> Callable[[], object]:
        ends = [self._memory.subscribe(callback)]
        ends += [other.subscribe(callback) for other in self._others]

        def end() -> None:
            for each in ends:
                each()

        return end

    def _refused(self, decision: Decision) -> SwitchEngaged | None:
        if not decision.allowed:
            return SwitchEngaged(decision.switch, decision.reason, decision.version, decision.known)
        if self._blocks_unknown and not decision.known:
            why = NOTHING_KNOWN if decision.version is None else NO_KEY
            return SwitchEngaged(None, why, decision.version, known=False)
        return None


class Guard:
    """Lets a call begin only while its switches allow it, and raises :class:`SwitchEngaged` else.

    As a decorator it suits functions, coroutine functions, generators and asynchronous generators,
    methods and class methods, and leaves their kind and signature as they are. It asks when the
    body is about to run: a coroutine's when it is awaited, a generator's at its first step. As a
    context manager (`with` or `async with`) it asks on entering, and gives the decision.

    Everything that waits inside, in a bulkhead's queue or a retry's back-off, is woken and refused
    when the switch is engaged, and each try and fallback target asks again. What runs already goes
    on to its end; with `on_engage="cancel"` coroutines are cancelled, generators end at their next
    step, and plain functions can ask :func:`~switchgear.cancellation.cancel_token`.

    Functions that find keys are given those arguments of the call that their own parameters name,
    `self` among them, or all of them if they name others; in a context manager none. What they
    raise is raised into the call; what they find that can't be a key is unknown, as in
    :meth:`Switchgear.allowed`. One guard may be used many times, by many threads. `others` are
    further sources that refuse calls once they have begun, such as a forced breaker; `owner` lives
    as long as the guard. Raises :class:`TypeError`, naming the argument, for keys of a wrong type,
    and :class:`ValueError` for another `unknown` or `on_engage`.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        segment: Keys = None,
        feature: Keys = None,
        experiments: Keys = (),
        targeting_key: KeyOf = None,
        unknown: Unknown = "allow",
        on_engage: OnEngage = "finish",
        others: Sequence[CancelSource] = (),
        owner: object = None,
    ) -> None:
        if unknown not in ("allow", "block"):
            raise ValueError(f'unknown must be "allow" or "block", not {unknown!r:.100}')
        if on_engage not in ("finish", "cancel"):
            raise ValueError(f'on_engage must be "finish" or "cancel", not {on_engage!r:.100}')
        self.on_engage: OnEngage = on_engage
        self._memory = memory
        self._owner = owner  # A client that nobody holds follows its console no more.
        self._blocks_unknown = unknown == "block"
        self._others = tuple(others)
        values = (segment, feature, experiments, targeting_key)
        given: dict[str, Any] = dict(zip(NAMES, values, strict=True))
        self._found = {name: each for name, each in given.items() if callable(each)}
        for name, find in self._found.items():
            if isinstance(find, type) and isinstance(find, Iterable):
                raise TypeError(
                    f"{name} can't be the class {find.__name__}: give its members' keys"
                )
            if is_coroutine_function(find):
                raise TypeError(f"{name} can't be found by a coroutine function")
        self._fixed: dict[str, Any] = {
            name: each if name == "targeting_key" else _fixed(name, each)
            for name, each in given.items()
            if name not in self._found
        }
        self._keys = None if self._found else self._keys_of({})
        """Those of every call, if they do not depend on its arguments."""

    def with_others(self, *others: CancelSource) -> "Guard":
        """Return the same guard, whose calls are refused by `others`, too, once they have begun."""
        return self._with_sources((*self._others, *others))

    def __call__(self, function: F) -> F:
        """Return `function`, guarded."""
        find = self._finder(function)
        return by_kind(
            function,
            plain=partial(self._plain, find),
            coroutine=partial(self._coroutine, find),
            generator=partial(self._generator, find),
            stream=None,
            what="a guard",
        )

    @property
    def finds(self) -> bool:
        """True if the keys depend on the arguments of a call."""
        return bool(self._found)

    def switches_of(self, function: Callable[..., Any]) -> "Callable[[Any, Any], GuardedKeys]":
        """Return what finds the switches, without `others`, of a call of `function` with these
        `(args, kwargs)`: for a fallback, which answers for a forced breaker and not for a kill."""
        return self._with_sources(())._finder(function)

    def __enter__(self) -> Decision:
        keys = self._keys_here()
        decision = keys.ask()
        enter(keys)
        return decision

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        scope = self._innermost()
        if scope is not None:
            leave(scope)

    async def __aenter__(self) -> Decision:
        decision = self.__enter__()
        scope = self._innermost()
        if self.on_engage == "cancel" and scope is not None:
            scope.cancellation = TaskCancellation(scope.source)
        return decision

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        scope = self._innermost()
        if scope is None:
            return
        leave(scope)
        if scope.cancellation is not None:
            scope.cancellation.end(error)

    def _with_sources(self, others: Sequence[CancelSource]) -> "Guard":
        return Guard(
            self._memory,
            **self._found,
            **self._fixed,
            unknown="block" if self._blocks_unknown else "allow",
            on_engage=self.on_engage,
            others=others,
            owner=self._owner,
        )

    def _plain(
        self, find: "Callable[[Any, Any], GuardedKeys]", function: Callable[..., Any]
    ) -> Callable[..., Any]:
        fixed = self._keys
        if fixed is None:

            def call_with_found_keys(*args: Any, **kwargs: Any) -> Any:
                keys = find(args, kwargs)
                keys.ask()
                outer = current_scope.get()
                current_scope.set(Scope(keys, outer))
                try:
                    return function(*args, **kwargs)
                finally:
                    current_scope.set(outer)

            return call_with_found_keys

        outermost = Scope(fixed)

        def call(*args: Any, **kwargs: Any) -> Any:
            fixed.ask()
            outer = current_scope.get()
            current_scope.set(outermost if outer is None else Scope(fixed, outer))
            try:
                return function(*args, **kwargs)
            finally:
                current_scope.set(outer)

        return call

    def _coroutine(
        self, find: "Callable[[Any, Any], GuardedKeys]", function: Callable[..., Any]
    ) -> Callable[..., Any]:
        cancels = self.on_engage == "cancel"

        async def call(*args: Any, **kwargs: Any) -> Any:
            keys = find(args, kwargs)
            keys.ask()
            scope = Scope(keys, current_scope.get())
            current_scope.set(scope)
            try:
                if cancels:
                    return await _cancellable(keys, function, args, kwargs)
                return await function(*args, **kwargs)
            finally:
                leave(scope)  # One that is collected may be closed in another context.

        return call

    def _generator(
        self, find: "Callable[[Any, Any], GuardedKeys]", function: Callable[..., Any]
    ) -> Callable[..., Any]:
        is_async = is_async_generator_function(function)
        return stepwise(
            function,
            lambda args, kwargs: GuardedSteps(find(args, kwargs), is_async, has_begun=False),
            is_async=is_async,
        )

    def _finder(self, function: Callable[..., Any]) -> "Callable[[Any, Any], GuardedKeys]":
        fixed = self._keys
        if fixed is not None:
            return lambda _args, _kwargs: fixed
        finders: dict[str, Finder] = {
            name: finder(find, function) for name, find in self._found.items()
        }

        def found(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> GuardedKeys:
            return self._keys_of({name: find(args, kwargs) for name, find in finders.items()})

        return found

    def _keys_here(self) -> GuardedKeys:
        """Those of a block, which has no arguments."""
        return self._keys or self._keys_of({name: find() for name, find in self._found.items()})

    def _keys_of(self, found: Mapping[str, Any]) -> GuardedKeys:
        asked = {**self._fixed, **found}
        segment, feature, experiments, targeting_key = (asked[name] for name in NAMES)
        return GuardedKeys(
            self,
            self._memory,
            (segment, feature, experiments, targeting_key),
            self._blocks_unknown,
            self._others,
        )

    def _innermost(self) -> Scope | None:
        """The innermost block of this guard that is entered in this context."""
        scope = current_scope.get()
        while scope is not None:
            if not scope.is_over and getattr(scope.source, "guard", None) is self:
                return scope
            scope = scope.outer
        return None


class GuardedSteps:
    """Context manager around each step of one generator: asks at the first, unless the call
    `has_begun`, and holds its keys within each. With `on_engage="cancel"` every step asks, and one
    that awaits is cancelled."""

    def __init__(self, keys: GuardedKeys, is_async: bool, *, has_begun: bool) -> None:
        self._keys = keys
        self._cancels, self._is_async = keys.guard.on_engage == "cancel", is_async
        self._has_begun = has_begun
        self._scope: Scope | None = None

    def __enter__(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            self._keys.ask()
        elif self._cancels and (refusal := self._keys.refusal()) is not None:
            raise refusal
        scope = self._scope = enter(self._keys)
        if self._cancels and self._is_async:
            scope.cancellation = TaskCancellation(self._keys)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._scope is None:
            return
        leave(self._scope)
        if self._scope.cancellation is not None:
            self._scope.cancellation.end(error)


async def _cancellable(
    keys: GuardedKeys,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> Any:
    cancellation = TaskCancellation(keys)
    try:
        value = await function(*args, **kwargs)
    except BaseException as error:
        cancellation.end(error)
        raise
    cancellation.end(None)
    return value


def _fixed(name: str, keys: object) -> str | tuple[str, ...] | None:
    """Return `keys` as text that can be asked for again and again: an iterator could be only once.

    Raises :class:`TypeError` for what can't be a key."""
    if keys is None:
        return None
    texts = []
    for key in several(keys, name):
        if (text := key_text(key)) is None:
            kind = type(key).__name__
            raise TypeError(
                f"{name} must be a {KEY_TYPES}, several of them, or a function that finds them in"
                f" the arguments of a call, not {kind:.100}"
            )
        texts.append(text)
    is_one = isinstance(keys, str) or not isinstance(keys, Iterable)
    return texts[0] if is_one else tuple(texts)
