"""Retries of stamina, counted like ours and never multiplied; needs `stamina`.

    @outermost("core->oracle", policy.counters, on=httpx.HTTPError, attempts=3)
    def ask(): …

or, for decorators that are there already: `on=unless_refused(httpx.HTTPError)`, and
`count_all({"shop.ask": ("core->oracle", policy.counters)})` once at the start.
"""

from collections.abc import Callable, Mapping
from typing import Any

import stamina
from stamina import instrumentation
from stamina.instrumentation import RetryDetails

from switchgear.adapters.outermost import Outermost, count_retry, is_counted, may_try_again
from switchgear.patterns.counters import Counters

Kinds = type[Exception] | tuple[type[Exception], ...] | Callable[[Exception], Any]


def outermost(name: str, counters: Counters | None = None, *, on: Kinds, **terms: Any) -> Outermost:
    """`stamina.retry(on=on, **terms)` for calls of the dependency `name`: see :class:`Outermost`.
    Refusals are not retried."""
    return Outermost(
        stamina.retry(on=unless_refused(on, is_outermost=True), **terms),
        name,
        counters,
        would_retry=lambda error: _is_yes(_asked(on, error)),
    )


def unless_refused(on: Kinds, *, is_outermost: bool = False) -> Callable[[Exception], Any]:
    """Return the predicate `on`, restricted: False for refusals, for catastrophic failures, and for
    errors that an outer retry would retry."""

    def decide(error: Exception) -> Any:
        found = _asked(on, error)
        is_retried = _is_yes(found) and may_try_again(error, is_outermost=is_outermost)
        return found if is_retried else False

    return decide


def _asked(on: Kinds, error: Any) -> Any:
    return isinstance(error, on) if isinstance(on, type | tuple) else on(error)


def _is_yes(found: object) -> bool:
    """Return True for True and for any number of seconds to wait, including 0.0."""
    return found is not None and found is not False


def count_all(
    dependencies: Mapping[str, tuple[str, Counters | None]],
) -> None:
    """Count the retries of functions that stamina decorates, named as stamina does, for their
    dependencies: beside the hooks that are there. Others are noted under their own name."""

    def hook(details: RetryDetails) -> None:
        if not is_counted():
            name, counters = dependencies.get(details.name, (details.name, None))
            kind = type(details.caused_by).__name__
            count_retry(name, counters, details.retry_num, kind, details.wait_for)

    instrumentation.set_on_retry_hooks([*instrumentation.get_on_retry_hooks(), hook])
