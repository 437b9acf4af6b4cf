"""What a policy may be told by the code that makes it."""

from collections.abc import Callable, Mapping
from typing import Any, TypedDict, cast

from switchgear.guards import KeyOf, Keys, OnEngage, Unknown
from switchgear.patterns.caches import Cache
from switchgear.patterns.fallback import Fallback
from switchgear.patterns.parameters import (
    BreakerParameters,
    BulkheadParameters,
    HttpTimeouts,
    RetryParameters,
    SpendParameters,
    Tier,
)

Errors = tuple[type[BaseException], ...]


class BreakerArguments(TypedDict, total=False):
    """`parameters` are for a breaker of which the console says nothing.

    `ignore` are exceptions that say nothing of the dependency; `is_failure` decides of each other
    one (default: all but client errors of HTTP), `is_failed_result` of what was returned.
    """

    parameters: BreakerParameters | None
    ignore: Errors
    is_failure: Callable[[BaseException], bool] | None
    is_failed_result: Callable[[Any], bool] | None


class BulkheadArguments(TypedDict, total=False):
    """`parameters`, or a tier, are for a bulkhead of which the console says nothing."""

    parameters: BulkheadParameters | Tier | None


class Arguments(TypedDict, total=False):
    """All are optional, and what the console says goes before them.

    - `timeout_seconds` of one try, `deadline_seconds` of the whole call with all its tries; `http`
      are the timeouts of the parts of an HTTP call, for transports.
    - `breaker`, `retry`, `bulkhead`: parameters. Without any, and nothing of the console, there is
      a breaker with the defaults, and neither retries nor a bulkhead.
    - `fallback`: a :class:`Fallback`, or a function that is given the call's arguments; `cache`:
      where good answers are kept, to stand in if that has none. `providers`: by name, what the
      targets of the console's chain are called with; after them comes the fallback. `on_switch`:
      whether all that answers also where a switch stops the call.
    - `budget`: limits of tokens, for calls that reserve them in `policy.budget`.
    - `key` and `priority` of the bulkhead: values, or what finds them in the call's arguments.
    - `ignore`, `is_failure`, `is_failed_result`: of the breaker, which all policies of a name
      share. `retry_on`, `never`, `retry_result`, `truncate`: of retries.
    - `hedge_after_seconds`: another attempt begins if a coroutine function takes longer (see
      :class:`Hedge`); needs `is_idempotent=True`, which says that the call may be made twice.
    """

    timeout_seconds: float | None
    deadline_seconds: float | None
    http: HttpTimeouts | None
    breaker: BreakerParameters | None
    retry: RetryParameters | None
    bulkhead: BulkheadParameters | Tier | None
    fallback: Fallback | Callable[..., Any] | None
    providers: Mapping[str, Callable[..., Any]] | None
    cache: Cache | None
    budget: SpendParameters | None
    on_switch: bool
    key: object
    priority: int | Callable[..., int | None] | None
    ignore: Errors
    is_failure: Callable[[BaseException], bool] | None
    is_failed_result: Callable[[Any], bool] | None
    retry_on: Errors | Callable[[BaseException], bool] | None
    never: Errors | Callable[[BaseException], bool] | None
    retry_result: Callable[[Any], bool] | None
    truncate: Callable[[tuple[Any, ...], dict[str, Any]], tuple[tuple[Any, ...], dict[str, Any]]]
    hedge_after_seconds: float | None
    is_idempotent: bool


class GuardArguments(TypedDict, total=False):
    """As in :meth:`Switchgear.guard`."""

    segment: Keys
    feature: Keys
    experiments: Keys
    targeting_key: KeyOf
    unknown: Unknown
    on_engage: OnEngage


class PolicyArguments(Arguments, GuardArguments, total=False):
    """Those of a policy, and of the guard around it."""


def parted(arguments: PolicyArguments) -> tuple[GuardArguments, Arguments]:
    """The guard's, and the rest."""
    of_guard = GuardArguments.__annotations__
    guarded = {name: one for name, one in arguments.items() if name in of_guard}
    rest = {name: one for name, one in arguments.items() if name not in of_guard}
    return cast(GuardArguments, guarded), cast(Arguments, rest)
