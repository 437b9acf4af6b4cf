"""Retries by stamina, counted like this library's and never nested with them; needs `stamina`.

    @outermost("core->oracle", policy.counters, on=httpx.HTTPError, attempts=3)
    def ask(): …

For existing decorators, use `on=unless_refused(httpx.HTTPError)`, and call `count_all({"shop.ask":
("core->oracle", policy.counters)})` once at startup.
"""

from collections.abc import Callable, Mapping
from typing import Any

import stamina
from stamina import instrumentation
from stamina.instrumentation import RetryDetails

from switchgear.adapters.outer_retry import OuterRetry, count_retry, is_counted, may_retry
from switchgear.patterns.counters import Counters

Kinds = type[Exception] | tuple[type[Exception], ...] | Callable[[Exception], Any]


def outermost(
    name: str, counters: Counters | None = None, *, on: Kinds, **terms: Any
) -> OuterRetry:
    """Return `stamina.retry(on=on, **terms)`, counted for the dependency `name`.

    See :class:`OuterRetry`.
    """
    return OuterRetry(
        stamina.retry(on=unless_refused(on, is_outermost=True), **terms),
        name,
        counters,
        would_retry=lambda error: _is_retry(_apply_predicate(on, error)),
    )


def unless_refused(on: Kinds, *, is_outermost: bool = False) -> Callable[[Exception], Any]:
    """Return a predicate like `on` that is False for errors which must not be retried.

    These are refusals, catastrophic failures, and errors that an outer retry would retry.
    `is_outermost` is that of :func:`may_retry`.
    """

    def decide(error: Exception) -> Any:
        found = _apply_predicate(on, error)
        is_retried = _is_retry(found) and may_retry(error, is_outermost=is_outermost)
        return found if is_retried else False

    return decide


def _apply_predicate(on: Kinds, error: Any) -> Any:
    return isinstance(error, on) if isinstance(on, type | tuple) else on(error)


def _is_retry(found: object) -> bool:
    """Return True if a predicate's result asks for a retry: True, or seconds to wait, even 0.0."""
    return found is not None and found is not False


def count_all(dependencies: Mapping[str, tuple[str, Counters | None]]) -> None:
    """Count the retries of all functions that are decorated with `stamina.retry`.

    `dependencies` maps stamina's name of a function to the dependency and its counters; other
    functions are recorded under their own names. Existing hooks are kept.
    """

    def hook(details: RetryDetails) -> None:
        if not is_counted():
            name, counters = dependencies.get(details.name, (details.name, None))
            kind = type(details.caused_by).__name__
            count_retry(name, counters, details.retry_num, kind, details.wait_for)

    instrumentation.set_on_retry_hooks([*instrumentation.get_on_retry_hooks(), hook])
