"""A policy around generators: one call from the first step to the end, with retry and fallback
until the first item."""

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

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Raises :class:`TypeError` for arguments that judge whole answers or need a coroutine."""
        if self._arguments.get("hedge_after_seconds") is not None:
            raise TypeError("a generator can't be hedged: use another policy for it")
        if self._arguments.get("retry_result") is not None:
            raise TypeError("retry_result judges whole answers and can't be used with a generator")
        layers = self._now()
        current = layers, layers.streamed(function, self._sought)

        def begun(*args: Any, **kwargs: Any) -> Any:
            nonlocal current
            layers, (known, built) = self._now(), current
            if known is not layers:
                try:
                    built = layers.streamed(function, self._sought)
                except TypeError as error:  # A chain from the console may name unsuitable targets.
                    log.warning("switchgear: policy %s stays as it was: %s", self._name, error)
                current = layers, built
            return built(*args, **kwargs)

        is_async = is_async_generator_function(function)
        return stepwise(begun, lambda args, kwargs: nullcontext(), is_async=is_async)
