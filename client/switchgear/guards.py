"""What runs only while it is allowed: decorators and context managers."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any, Literal, TypeVar

from switchgear.deciding.evaluate import Decision, several
from switchgear.deciding.keys import KEY_TYPES, Key, key_text
from switchgear.finding import finder
from switchgear.refusals import Refused
from switchgear.wrapping import by_kind, is_coroutine_function, wrapped

Keys = Key | Iterable[Key] | None | Callable[..., Key | Iterable[Key] | None]
"""A key, several, none, or what finds them in the arguments of a call."""

KeyOf = Key | None | Callable[..., object]
"""A targeting key, or what finds it in the arguments of a call."""

Unknown = Literal["allow", "block"]

F = TypeVar("F", bound=Callable[..., Any])

NOTHING_KNOWN = "nothing is known of what is engaged, and this guard blocks then"
NO_KEY = "no switch can have a key of this call, and this guard blocks then"

_NOTHING = nullcontext()


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


class Guard:
    """Lets a call go on only while it is allowed, and raises :class:`SwitchEngaged` else.

    As a decorator it suits functions, coroutine functions, generators and asynchronous generators,
    methods and class methods, and leaves their kind and signature as they are. It asks when the
    body is about to run: a coroutine's when it is awaited, a generator's at its first step. As a
    context manager (`with` or `async with`) it asks on entering, and gives the decision.

    What finds a key is given those arguments of the call that its own parameters name, `self` among
    them, or all of them if it names others; in a context manager none. What it raises is raised
    into the call; what it finds that can't be a key is unknown, as in :meth:`Switchgear.allowed`.
    One guard may be used many times, by many threads. Raises :class:`TypeError`, naming the
    argument, for keys of a wrong type, and :class:`ValueError` for another `unknown`.
    """

    def __init__(
        self,
        check: Callable[..., Decision],
        *,
        segment: Keys = None,
        feature: Keys = None,
        experiments: Keys = (),
        targeting_key: KeyOf = None,
        unknown: Unknown = "allow",
    ) -> None:
        if unknown not in ("allow", "block"):
            raise ValueError(f'unknown must be "allow" or "block", not {unknown!r:.100}')
        self._check = check
        self._blocks_unknown = unknown == "block"
        asked: dict[str, Any] = {
            "segment": segment,
            "feature": feature,
            "experiments": experiments,
            "targeting_key": targeting_key,
        }
        self._found = {name: each for name, each in asked.items() if callable(each)}
        self._fixed = {
            name: each if name == "targeting_key" else _fixed(name, each)
            for name, each in asked.items()
            if not callable(each)
        }
        for name, find in self._found.items():
            if isinstance(find, type) and isinstance(find, Iterable):
                raise TypeError(
                    f"{name} can't be the class {find.__name__}: give its members' keys"
                )
            if is_coroutine_function(find):
                raise TypeError(f"{name} can't be found by a coroutine function")

    def __call__(self, function: F) -> F:
        """`function`, guarded."""
        if not self._found:
            return by_kind(
                function,
                plain=self._plain,
                coroutine=self._coroutine,
                stream=lambda _args, _kwargs: self,
                what="a guard",
            )
        finders = {name: finder(find, function) for name, find in self._found.items()}

        def around(
            args: tuple[Any, ...], kwargs: Mapping[str, Any]
        ) -> AbstractContextManager[object]:
            self._ask({name: find(args, kwargs) for name, find in finders.items()})
            return _NOTHING

        return wrapped(function, around)

    def _plain(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self._enter()
            return function(*args, **kwargs)

        return call

    def _coroutine(self, function: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            self._enter()
            return await function(*args, **kwargs)

        return call

    @property
    def finds(self) -> bool:
        """Whether it looks at the arguments of a call."""
        return bool(self._found)

    def __enter__(self) -> Decision:
        return self._enter()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

    async def __aenter__(self) -> Decision:
        return self._enter()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

    def _enter(self) -> Decision:
        if self._found:
            return self._ask({name: find() for name, find in self._found.items()})
        decision = self._check(**self._fixed)
        return decision if decision.allowed and decision.known else self._judged(decision)

    def _ask(self, found: Mapping[str, Any]) -> Decision:
        return self._judged(self._check(**self._fixed, **found))

    def _judged(self, decision: Decision) -> Decision:
        if not decision.allowed:
            raise SwitchEngaged(decision.switch, decision.reason, decision.version, decision.known)
        if self._blocks_unknown and not decision.known:
            why = NOTHING_KNOWN if decision.version is None else NO_KEY
            raise SwitchEngaged(None, why, decision.version, known=False)
        return decision


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
