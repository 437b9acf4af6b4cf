"""Targets of a fallback, and the arguments that each target is called with."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from switchgear.argument_finders import find_parameters, make_finder
from switchgear.decorators import is_async_generator_function, is_coroutine_function


@dataclass(frozen=True, kw_only=True)
class FallbackTarget:
    """A function that a fallback calls after the call itself and earlier targets have failed.

    `call` receives the arguments of the original call that its own parameters name, or all of them
    if it has other parameters. If it has parameters `cause` and `model`, it also receives the last
    error and the `model`. The target is skipped while `only_if` returns False, and if `suits`
    returns False for the error of the call. `is_partial` marks its answers as incomplete.
    """

    name: str
    call: Callable[..., Any]
    provider: str | None = None
    model: str | None = None
    only_if: Callable[[], bool] | None = None
    is_partial: bool = False
    suits: Callable[[BaseException], bool] | None = None

    def applies_to(self, error: BaseException) -> bool:
        """Return True if the target may be called now for a call that failed with `error`."""
        if self.only_if is not None and not self.only_if():
            return False
        return self.suits is None or self.suits(error)

    @property
    def is_async(self) -> bool:
        """True if the result of the target must be awaited."""
        return is_coroutine_function(self.call) or is_async_generator_function(self.call)

    @property
    def takes_model(self) -> bool:
        """True if `call` has a parameter `model`, or takes any keyword."""
        parameters = find_parameters(self.call)
        return (
            parameters is None
            or "model" in parameters
            or any(each.kind is each.VAR_KEYWORD for each in parameters.values())
        )


class BoundTarget:
    """A callable that calls `target` with the arguments of a failed call of `function`."""

    def __init__(self, target: FallbackTarget, function: Callable[..., Any]) -> None:
        self.target = target
        parameters = find_parameters(target.call)
        self._wants_cause = parameters is not None and "cause" in parameters
        self._wants_model = target.model is not None and target.takes_model

        def collect(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
            return args, kwargs

        if parameters is not None:
            # `cause` and `model` do not come from the original call.
            own = [each for name, each in parameters.items() if name not in ("cause", "model")]
            collect.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
        self._find = make_finder(collect, function)

    def __call__(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], cause: object) -> Any:
        given, named = self._find(args, kwargs)
        if self._wants_cause:
            named["cause"] = cause
        if self._wants_model:
            named["model"] = self.target.model
        return self.target.call(*given, **named)


def make_target(given: FallbackTarget | Callable[..., Any]) -> FallbackTarget:
    """Return `given`, a target or a plain function, as a target of a fallback.

    A plain function becomes a target under its own name, with partial answers. Raise
    :class:`TypeError` for an object that can't be called.
    """
    if isinstance(given, FallbackTarget):
        return given
    if not callable(given):
        raise TypeError(f"a fallback target must be callable, not {given!r:.100}")
    return FallbackTarget(
        name=getattr(given, "__name__", type(given).__name__), call=given, is_partial=True
    )
