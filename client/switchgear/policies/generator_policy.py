"""A policy around generators: one call from the first step to the end."""

import logging
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from switchgear.decorators import is_async_generator_function
from switchgear.generator_steps import wrap_steps
from switchgear.policies.arguments import Arguments
from switchgear.policies.layers import AdmissionArguments, Layers

log = logging.getLogger("switchgear")


class GeneratorPolicy:
    """A decorator of generator functions for the policy `name`."""

    def __init__(
        self, name: str, arguments: Arguments, sought: AdmissionArguments, now: Callable[[], Layers]
    ) -> None:
        self._name = name
        self._arguments = arguments
        self._admission = sought
        self._current_layers = now

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the wrapped function.

        Raise :class:`TypeError` for arguments that evaluate whole answers or need a coroutine.
        """
        if self._arguments.get("hedge_after_seconds") is not None:
            raise TypeError("a generator can't be hedged: use another policy for it")
        if self._arguments.get("retry_result") is not None:
            raise TypeError("retry_result judges whole answers and can't be used with a generator")
        layers = self._current_layers()
        current = layers, layers.wrap_generator(function, self._admission)

        def begun(*args: Any, **kwargs: Any) -> Any:
            nonlocal current
            layers, (known, built) = self._current_layers(), current
            if known is not layers:
                try:
                    built = layers.wrap_generator(function, self._admission)
                except TypeError as error:  # A chain from the console may name unsuitable targets.
                    log.warning("switchgear: policy %s stays as it was: %s", self._name, error)
                current = layers, built
            return built(*args, **kwargs)

        is_async = is_async_generator_function(function)
        return wrap_steps(begun, lambda args, kwargs: nullcontext(), is_async=is_async)
