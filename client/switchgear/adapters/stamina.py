"""Retries of stamina, kept as ours are; needs `stamina`.

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
    What is refused is not tried again."""
    return Outermost(stamina.retry(on=unless_refused(on), **terms), name, counters)


def unless_refused(on: Kinds) -> Callable[[Exception], Any]:
    """What `on` says, but never for what was refused or is catastrophic, and not while another
    retry is around."""

    def decide(error: Exception) -> Any:
        if not may_try_again(error):
            return False
        if isinstance(on, type | tuple):
            return isinstance(error, on)
        return on(error)

    return decide


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
