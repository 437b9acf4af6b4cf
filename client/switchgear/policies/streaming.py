"""A policy around generators: one call from the first step to the end, which is made once."""

import logging
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from switchgear.policies.arguments import Arguments
from switchgear.policies.layers import Layers, Sought
from switchgear.stepping import stepwise
from switchgear.wrapping import is_async_generator_function

log = logging.getLogger("switchgear")


class Streaming:
    """Makes generator functions of the policy `name`, whose layers are those that `now` gives."""

    def __init__(
        self, name: str, arguments: Arguments, sought: Sought, now: Callable[[], Layers]
    ) -> None:
        self._name = name
        self._arguments = arguments
        self._sought = sought
        self._now = now
        self._has_warned = False

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Raises :class:`TypeError` if the code has what would have to call again."""
        if unfit := self._unfit():
            raise TypeError(
                f"a policy with a {' and a '.join(unfit)} can't be put around a generator, which "
                "can't begin again: have another policy for it"
            )
        built: tuple[Layers, Callable[..., Any]] | None = None

        def begun(*args: Any, **kwargs: Any) -> Any:
            nonlocal built
            layers, current = self._now(), built
            if current is None or current[0] is not layers:
                current = built = layers, layers.streamed(function, self._sought)
                self._warn(layers)
            return current[1](*args, **kwargs)

        is_async = is_async_generator_function(function)
        return stepwise(begun, lambda args, kwargs: nullcontext(), is_async=is_async)

    def _unfit(self) -> list[str]:
        retry, fallback = self._arguments.get("retry"), self._arguments.get("fallback")
        unfit = ["retry"] if retry is not None and retry.attempts > 1 else []
        if self._arguments.get("hedge_after_seconds") is not None:
            unfit.append("hedge")
        has_none = fallback is None and self._arguments.get("cache") is None
        return unfit if has_none else [*unfit, "fallback"]

    def _warn(self, layers: Layers) -> None:
        if layers.calls_again and not self._has_warned:
            self._has_warned = True
            log.warning(
                "switchgear: policy %s has no retry and no fallback for generators", self._name
            )
