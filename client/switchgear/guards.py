"""Guards: decorators and context managers that run code only while its switches allow it."""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from switchgear.argument_finders import KeyFinder, make_finder
from switchgear.cancellation import (
    CancelSource,
    SourceScope,
    current_scope,
    enter,
    leave,
)
from switchgear.decorators import (
    F,
    is_async_generator_function,
    is_coroutine_function,
    wrap_by_kind,
)
from switchgear.evaluation.decisions import Decision, iter_keys
from switchgear.evaluation.keys import KEY_TYPES, Key, key_text
from switchgear.evaluation.snapshot_store import SnapshotStore
from switchgear.generator_steps import wrap_steps
from switchgear.guarded_keys import GuardedKeys, GuardedSteps, SwitchEngaged, run_cancellable

__all__ = ["Guard", "KeyOf", "Keys", "OnEngage", "SwitchEngaged", "Unknown"]

Keys = Key | Iterable[Key] | None | Callable[..., Key | Iterable[Key] | None]
"""A key, several, none, or a function that finds them in the arguments of a call."""

KeyOf = Key | None | Callable[..., object]
"""A targeting key, or a function that finds it in the arguments of a call."""

Unknown = Literal["allow", "block"]

OnEngage = Literal["finish", "cancel"]
"""The treatment of a running call when its switch is engaged."""


NAMES = ("segment", "feature", "experiments", "targeting_key")


class Guard:
    """A decorator and context manager whose calls begin only while their switches allow it.

    Otherwise :class:`SwitchEngaged` is raised.

        @gear.guard(feature="chat", targeting_key=lambda user: user.id)
        def answer(user, question): ...

    As a decorator it suits functions, coroutine functions, generators and asynchronous generators,
    methods and class methods, and keeps their kind and signature. It checks the switches when the
    body is about to run: a coroutine's when it is awaited, a generator's at its first step. As a
    context manager (`with` or `async with`) it checks on entry, and returns the decision.

    When the switch is engaged, calls waiting inside, in a bulkhead's queue or a retry's back-off,
    are woken and refused, and each attempt and fallback target checks again. Running calls finish;
    with `on_engage="cancel"` coroutines are cancelled, generators end at their next step, and plain
    functions can check :func:`~switchgear.cancellation.cancel_token`.

    A function that finds keys receives the arguments of the call that have the names of its own
    parameters, including `self`. If one of its parameters is not a parameter of the guarded
    function, it receives all arguments. In a `with` statement the function receives no arguments.
    Errors of the function are raised into the call. A value that can't be a key is unknown, as in
    :meth:`Switchgear.allowed`.

    A guard may be used many times, by many threads. `others` are further sources of refusals, such
    as a forced breaker, checked only after a call has begun; `owner` is an object that the guard
    keeps alive. Raise :class:`TypeError`, naming the argument, for keys of the wrong type, and
    :class:`ValueError` for an invalid `unknown` or `on_engage`.
    """

    def __init__(
        self,
        store: SnapshotStore,
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
        self._store = store
        self._owner = owner  # A client that is garbage-collected stops following its console.
        self._blocks_unknown = unknown == "block"
        self._others = tuple(others)
        values = (segment, feature, experiments, targeting_key)
        given: dict[str, Any] = dict(zip(NAMES, values, strict=True))
        self._finders = {name: each for name, each in given.items() if callable(each)}
        for name, find in self._finders.items():
            if isinstance(find, type) and isinstance(find, Iterable):
                raise TypeError(
                    f"{name} can't be the class {find.__name__}: pass the keys of its members"
                )
            if is_coroutine_function(find):
                raise TypeError(f"{name} can't be determined by a coroutine function")
        self._fixed: dict[str, Any] = {
            name: each if name == "targeting_key" else _freeze_keys(name, each)
            for name, each in given.items()
            if name not in self._finders
        }
        self._keys = None if self._finders else self._keys_of({})
        """The keys of every call, if they do not depend on its arguments."""

    def with_others(self, *others: CancelSource) -> "Guard":
        """Return a copy of this guard that also checks `others`, sources of refusals.

        They are checked only after a call has begun.
        """
        return self._with_sources((*self._others, *others))

    def __call__(self, function: F) -> F:
        find = self._finder(function)
        return wrap_by_kind(
            function,
            plain=partial(self._plain, find),
            coroutine=partial(self._coroutine, find),
            generator=partial(self._generator, find),
            what="a guard",
        )

    @property
    def depends_on_call(self) -> bool:
        """True if the keys depend on the arguments of a call."""
        return bool(self._finders)

    def switches_of(self, function: Callable[..., Any]) -> "Callable[[Any, Any], GuardedKeys]":
        """Return a function of `(args, kwargs)` that finds the switches of a call of `function`.

        The guard's `others` are not included: a fallback may answer a call that a forced breaker
        rejects, but not a call that a kill switch stops.
        """
        return self._with_sources(())._finder(function)

    def __enter__(self) -> Decision:
        return self._enter(cancels=False)[0]

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        scope = self._innermost_scope()
        if scope is not None:
            leave(scope, error)

    async def __aenter__(self) -> Decision:
        return self._enter(cancels=self.on_engage == "cancel")[0]

    async def __aexit__(self, *raised: Any) -> None:
        self.__exit__(*raised)

    def _with_sources(self, others: Sequence[CancelSource]) -> "Guard":
        same = copy.copy(self)
        same._others = tuple(others)
        same._keys = None if same._finders else same._keys_of({})
        return same

    def _plain(
        self, find: "Callable[[Any, Any], GuardedKeys]", function: Callable[..., Any]
    ) -> Callable[..., Any]:
        fixed = self._keys
        if fixed is None:

            def call_with_found_keys(*args: Any, **kwargs: Any) -> Any:
                keys = find(args, kwargs)
                keys.check_call()
                scope = SourceScope(keys, current_scope.get())
                try:  # From here on a signal handler may raise: the scope must be left.
                    current_scope.set(scope)
                    return function(*args, **kwargs)
                finally:
                    current_scope.set(scope.outer)
                    scope.is_over = True

            return call_with_found_keys

        outermost = SourceScope(fixed)

        def call(*args: Any, **kwargs: Any) -> Any:
            fixed.check_call()
            outer = current_scope.get()
            try:
                current_scope.set(outermost if outer is None else SourceScope(fixed, outer))
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
            keys.check_call()
            scope = SourceScope(keys, current_scope.get())
            try:
                current_scope.set(scope)
                if cancels:
                    return await run_cancellable(keys, function, args, kwargs)
                return await function(*args, **kwargs)
            finally:
                leave(scope)  # A garbage-collected coroutine may be closed in another context.

        return call

    def _generator(
        self, find: "Callable[[Any, Any], GuardedKeys]", function: Callable[..., Any]
    ) -> Callable[..., Any]:
        is_async = is_async_generator_function(function)
        return wrap_steps(
            function,
            lambda args, kwargs: GuardedSteps(find(args, kwargs), is_async, has_begun=False),
            is_async=is_async,
        )

    def _finder(self, function: Callable[..., Any]) -> "Callable[[Any, Any], GuardedKeys]":
        fixed = self._keys
        if fixed is not None:
            return lambda _args, _kwargs: fixed
        finders: dict[str, KeyFinder] = {
            name: make_finder(find, function) for name, find in self._finders.items()
        }

        def find_keys(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> GuardedKeys:
            return self._keys_of({name: find(args, kwargs) for name, find in finders.items()})

        return find_keys

    def _enter(self, *, cancels: bool) -> tuple[Decision, SourceScope]:
        """Check the switches for a `with` block, which has no arguments, and enter its scope."""
        keys = self._keys or self._keys_of({name: find() for name, find in self._finders.items()})
        return keys.check_call(), enter(keys, cancels=cancels)

    def _keys_of(self, found: Mapping[str, Any]) -> GuardedKeys:
        query = {**self._fixed, **found}
        segment, feature, experiments, targeting_key = (query[name] for name in NAMES)
        return GuardedKeys(
            self,
            self.on_engage == "cancel",
            self._store,
            (segment, feature, experiments, targeting_key),
            self._blocks_unknown,
            self._others,
        )

    def _innermost_scope(self) -> SourceScope | None:
        """Return the innermost open `with` block of this guard in this context, if any."""
        scope = current_scope.get()
        while scope is not None:
            if not scope.is_over and getattr(scope.source, "guard", None) is self:
                return scope
            scope = scope.outer
        return None


def _freeze_keys(name: str, keys: object) -> str | tuple[str, ...] | None:
    """Return a guard's keys as text, one or a tuple; raise :class:`TypeError` for a wrong type."""
    if keys is None:
        return None
    texts = []
    for key in iter_keys(keys, name):
        if (text := key_text(key)) is None:
            kind = type(key).__name__
            raise TypeError(
                f"{name} must be a {KEY_TYPES}, a collection of them, or a function that returns"
                f" them from a call's arguments, not {kind:.100}"
            )
        texts.append(text)
    is_one = isinstance(keys, str) or not isinstance(keys, Iterable)
    return texts[0] if is_one else tuple(texts)
